//! The facts about a table that determine the size and the speed of a lookup structure.

use fullview_table::{Address, Prefix, Rib};

/// Named counts of one table, in a fixed order.
pub type Facts = Vec<(String, f64)>;

/// All facts of one family's table.
pub fn facts<A: Address>(rib: &Rib<A>) -> Facts {
    let prefixes: Vec<Prefix<A>> = rib.iter().map(|route| route.prefix).collect();
    let mut facts = vec![
        ("routes".into(), prefixes.len() as f64),
        ("routes that adjoin one of equal length".into(), followers(&prefixes) as f64),
        ("flattened ranges".into(), rib.ranges().count() as f64),
    ];
    let nesting = nesting(&prefixes);
    facts.extend(nesting.iter().enumerate().map(|(depth, n)| (format!("nested {depth} deep"), *n as f64)));
    let strides = (1..A::BITS).filter(|bits| bits % 8 == 0 || bits % 6 == 0);
    facts.extend(strides.map(|bits| (format!("nodes below {bits} bits"), groups(&prefixes, bits) as f64)));
    facts.push(("occupied /16 chunks".into(), chunks(&prefixes, 16).len() as f64));
    facts.extend(quantiles(rib));
    facts
}

fn followers<A: Address>(prefixes: &[Prefix<A>]) -> usize {
    let adjoins = |pair: &&[Prefix<A>]| pair[0].last().checked_add(&A::one()) == Some(pair[1].first());
    prefixes.windows(2).filter(adjoins).filter(|pair| pair[0].len() == pair[1].len()).count()
}

/// Prefixes by the number of shorter ones that cover them.
fn nesting<A: Address>(prefixes: &[Prefix<A>]) -> Vec<usize> {
    let (mut open, mut counts): (Vec<Prefix<A>>, _) = (Vec::new(), vec![0; 4]);
    for prefix in prefixes {
        open.truncate(open.iter().take_while(|outer| outer.covers(*prefix)).count());
        let depth = open.len().min(counts.len() - 1);
        counts[depth] += 1;
        open.push(*prefix);
    }
    counts
}

/// Different values of the first `bits` bits among the longer prefixes: the nodes of a multibit trie at that depth,
/// and, at 24 bits, the second-stage groups of DIR-24-8.
pub fn groups<A: Address>(prefixes: &[Prefix<A>], bits: u8) -> usize {
    let longer = prefixes.iter().filter(|prefix| prefix.len() > bits);
    let mut heads: Vec<A> = longer.map(|prefix| prefix.first() & A::mask(bits)).collect();
    heads.dedup();
    heads.len()
}

/// For each `bits`-bit chunk in which prefixes start, their number.
fn chunks<A: Address>(prefixes: &[Prefix<A>], bits: u8) -> Vec<usize> {
    prefixes.chunk_by(|a, b| a.first() & A::mask(bits) == b.first() & A::mask(bits)).map(<[_]>::len).collect()
}

/// How unevenly the ranges are distributed over 18-bit chunks, the direct table of DXR and poptrie.
fn quantiles<A: Address>(rib: &Rib<A>) -> Facts {
    let starts: Vec<A> = rib.ranges().map(|range| range.first & A::mask(18)).collect();
    let mut sizes: Vec<usize> = starts.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    sizes.sort_unstable();
    let largest = |share: usize| sizes[sizes.len() - sizes.len() / share..].iter().sum::<usize>() as f64;
    vec![
        ("chunks of 18 bits with a range".into(), sizes.len() as f64),
        ("ranges in the fullest tenth of them".into(), largest(10)),
        ("ranges in the fullest hundredth".into(), largest(100)),
    ]
}
