//! What netmap's pkt-gen prints: a line for each report, and a sum at its end. Versions differ in what stands between.

/// The clock of a line starts again at 0 after so many seconds.
pub const CLOCK_SECONDS: f64 = 1000.0;

/// A line of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PktGenLine {
    Report(PktGenReport),
    /// A thread is about to send, at this time of its host's clock, in seconds modulo 1000
    Ready(f64),
    /// Numbers with units, of which digits are missing
    Rounded,
    Other,
}

/// What came or went since the report before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PktGenReport {
    pub packets: u64,
    pub microseconds: u64,
}

/// What a run did in all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PktGenSum {
    pub packets: u64,
    pub seconds: f64,
}

impl PktGenLine {
    /// `402.19 main_thread [2687] 100 pps (106 pkts 50880 bps in 1063205 usec) …`; without bits in older versions.
    pub fn of(line: &str) -> PktGenLine {
        if let Some(clock) = ready(line) {
            return PktGenLine::Ready(clock);
        }
        let counts = line.split_once("main_thread").and_then(|(_, rest)| rest.split_once('('));
        let Some((_, counts)) = counts else { return PktGenLine::Other };
        let words: Vec<&str> = counts.split_whitespace().collect();
        match words[..] {
            [packets, "pkts", ..] if packets.contains('.') => PktGenLine::Rounded,
            [packets, "pkts", ..] => report(packets, &words).map_or(PktGenLine::Other, PktGenLine::Report),
            [_, unit, ..] if unit.ends_with("pkts") => PktGenLine::Rounded,
            _ => PktGenLine::Other,
        }
    }
}

/// The time of a line, in seconds by the clock of its host: `401.127911 main [2938] interface is vcxl0`.
pub fn clock(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    match words[..] {
        [clock, _, number] if number.starts_with('[') => {
            clock.parse().ok().filter(|clock| (0.0..CLOCK_SECONDS).contains(clock))
        }
        _ => None,
    }
}

/// `401.127911 sender_body [1611] start, fd 3 main_fd 3`
fn ready(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    match words[..] {
        [_, "sender_body", _, "start" | "start,"] => clock(line),
        _ => None,
    }
}

fn report(packets: &str, words: &[&str]) -> Option<PktGenReport> {
    let microseconds = after(words, "in")?.parse().ok()?;
    Some(PktGenReport { packets: packets.parse().ok()?, microseconds })
}

impl PktGenSum {
    /// The sum in what a run has printed: `Sent 100 packets … in 0.10 seconds.`, with a line of its exact speed if it was told to
    /// print no units.
    pub fn of(text: &str) -> Option<PktGenSum> {
        let mut lines = text.lines().skip_while(|line| !is_sum(line));
        let words: Vec<&str> = lines.next()?.split_whitespace().collect();
        if words[1].starts_with("nothing") {
            return Some(PktGenSum { packets: 0, seconds: 0.0 });
        }
        let (packets, seconds) = (number(words[1])?, after(&words, "in")?.parse().ok()?);
        let seconds = lines.next().and_then(speed).map_or(seconds, |speed| packets as f64 / speed);
        Some(PktGenSum { packets, seconds })
    }
}

fn is_sum(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(2).collect();
    matches!(words[..], ["Sent" | "Received", what] if what.starts_with("nothing") || number(what).is_some())
}

/// A number, after which some versions have a comma.
fn number(word: &str) -> Option<u64> {
    word.trim_end_matches(',').parse().ok()
}

fn speed(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["Speed:", speed, "pps", ..] => speed.parse().ok().filter(|speed| *speed > 0.0),
        _ => None,
    }
}

fn after<'w>(words: &[&'w str], word: &str) -> Option<&'w str> {
    let place = words.iter().rposition(|one| *one == word)?;
    words.get(place + 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_all_versions_are_read() {
        let of = |packets, microseconds| PktGenLine::Report(PktGenReport { packets, microseconds });
        for (line, expected) in [
            (
                "1.5 main_thread [2687] 99 pps (100 pkts 48000 bps in 1001002 usec) 2.5 avg_batch 9 min_space",
                of(100, 1_001_002),
            ),
            (
                "1.5 main_thread [2687] 99 pps [avg/std 9 /0 pps](100 pkts 48000 bps in 1001002 usec) 2",
                of(100, 1_001_002),
            ),
            ("998.1 main_thread [1200] 0 pps (0 pkts in 1000998 usec)", of(0, 1_000_998)),
            (
                "1.5 main_thread [2687] 1.002 Mpps (1.003 Mpkts 480.96 Mbps in 1001002 usec) 2",
                PktGenLine::Rounded,
            ),
            (
                "1.5 main_thread [2687] 0.000 pps (0.000 pkts 0.000 bps in 1001002 usec) 0.00",
                PktGenLine::Rounded,
            ),
            ("1.5 main_thread [2687] 99 pps (100 pkts", PktGenLine::Other),
            ("1.5 receiver_body [1838] reading from netmap:em1 fd 3 main_fd 3", PktGenLine::Other),
            ("401.5 sender_body [1611] start, fd 3 main_fd 3", PktGenLine::Ready(401.5)),
            ("401.5 sender_body [1669] frags 1 frag_size 60", PktGenLine::Other),
            ("", PktGenLine::Other),
        ] {
            assert_eq!(PktGenLine::of(line), expected, "{line}");
        }
    }

    #[test]
    fn the_sum_has_the_time_as_exactly_as_it_was_printed() {
        let of = |packets, seconds| Some(PktGenSum { packets, seconds });
        let sum = "Sent 3000 packets 180000 bytes 12 events 60 bytes each in 1.50 seconds.\n";
        let exact = "Speed: 2001 pps Bandwidth: 960480 bps (raw 960480 bps). Average batch: 250.00 pkts\n";
        let rounded =
            "Speed: 2.001 Kpps Bandwidth: 960.48 Kbps (raw 960.48 Kbps). Average batch: 250.00 pkts\n";
        for (text, expected) in [
            (format!("1.2 main [3065] burst\n{sum}{exact}"), of(3000, 3000.0 / 2001.0)),
            (format!("{sum}{rounded}"), of(3000, 1.5)),
            ("Received 7 packets, 60 bytes each, in 2.25 seconds.".into(), of(7, 2.25)),
            ("Sent nothing.".into(), of(0, 0.0)),
            ("Sending on netmap:em0: 1 queues\nSent on".into(), None),
            ("Sent 7 packets".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(PktGenSum::of(&text), expected, "{text}");
        }
    }

    /// Logs of real runs, of several versions: those of senders that were not cut off have a sum.
    #[test]
    fn the_reports_of_published_runs_add_up_to_their_sums() {
        let Some(folder) = fullview_testnet::shared::data("netbenches") else { return };
        let mut compared = 0;
        for series in std::fs::read_dir(folder).unwrap() {
            let logs = std::fs::read_dir(series.unwrap().path().join("RAW")).unwrap();
            let paths = logs.map(|log| log.unwrap().path());
            for path in paths.filter(|path| path.extension().is_some_and(|end| end == "sender")) {
                let text = std::fs::read_to_string(&path).unwrap();
                let Some(sum) = PktGenSum::of(&text) else { continue };
                let packets = |line| match PktGenLine::of(line) {
                    PktGenLine::Report(report) => report.packets,
                    _ => 0,
                };
                assert_eq!(text.lines().map(packets).sum::<u64>(), sum.packets, "{}", path.display());
                compared += 1;
            }
        }
        assert_eq!(compared, 205);
    }
}
