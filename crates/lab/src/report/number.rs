//! The formats of figures in the report.

/// `1 run`, `5 runs`.
pub(super) fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Formats a ratio minus one as `+4.32 %`.
pub(super) fn signed_percent(ratio: f64) -> String {
    // Adding 0 turns −0 into 0, so that a small negative value is not written as −0.00.
    let percent = (ratio * 1e4).round() / 100.0 + 0.0;
    format!("{percent:+.2} %")
}

/// Formats the two ends of an interval of ratios minus one.
pub(super) fn interval(low: f64, high: f64) -> String {
    format!("{} … {}", signed_percent(low), signed_percent(high))
}

/// Formats a positive number with three significant digits, however small it is: 0.00412, 4.25, 31.7, 420.
pub(super) fn ratio(value: f64) -> String {
    let decimals = decimals(value);
    format!("{value:.decimals$}")
}

/// Formats a ratio with three decimals around 1, else with three or four significant digits: 1.188, 34.12, 0.0123.
pub(super) fn times(value: f64) -> String {
    let decimals = if value < 0.9995 { decimals(value) } else { decimals(value / 10.0) };
    match value {
        f64::INFINITY => "∞".into(),
        _ if value == 0.0 || (1e-6..1e7).contains(&value) => format!("{value:.decimals$}"),
        _ => format!("{value:.0e}"),
    }
}

/// How many decimals a number of three significant digits has.
fn decimals(value: f64) -> usize {
    // 9.995 is written as 10.0, so that it counts as 10.
    let magnitude = (value / 0.9995).log10().floor();
    if value > 0.0 { (2.0 - magnitude).max(0.0) as usize } else { 0 }
}

/// Formats a part of a whole as a rule has it: `5 %`, `0.25 %`.
pub(super) fn percent(share: f64) -> String {
    let decimals = decimals(100.0 * share).max(2);
    let digits = format!("{:.decimals$}", 100.0 * share);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a part of a whole with three digits: `4.32 %`.
pub(super) fn part(share: f64) -> String {
    if share == 0.0 { "none".into() } else { format!("{} %", ratio(100.0 * share)) }
}

/// Formats a time as it is said: seconds up to two minutes, then minutes, then hours.
pub(super) fn time(seconds: f64) -> String {
    let whole = |unit: f64| (seconds / unit).round() as u32;
    match seconds {
        _ if seconds < 119.5 => counted(whole(1.0).max(1), "second"),
        _ if seconds < 119.5 * 60.0 => counted(whole(60.0), "minute"),
        _ => counted(whole(3600.0), "hour"),
    }
}

/// Formats a probability with four digits.
pub(super) fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}

/// Formats a count or a rate with separated thousands: `22,571,194`. A value below a hundred keeps two decimals.
pub(super) fn grouped(value: f64) -> String {
    if value < 100.0 && value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{:.0}", value);
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for start in (first..digits.len()).step_by(3) {
        text.push_str(if text.is_empty() { "" } else { "," });
        text.push_str(&digits[start..start + 3]);
    }
    text
}

/// Formats a number of bytes in the largest binary unit in which it is at least one.
pub(super) fn bytes(count: u64) -> String {
    let units = ["GiB", "MiB", "KiB"];
    let sizes = units.into_iter().zip([1u64 << 30, 1 << 20, 1 << 10]);
    let fitting = sizes.into_iter().find(|(_, size)| count >= *size);
    fitting.map_or_else(
        || format!("{count} B"),
        |(unit, size)| format!("{:.0} {unit}", count as f64 / size as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_formatted() {
        assert_eq!(grouped(0.0), "0");
        assert_eq!(grouped(99.5), "99.50");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_000.0), "1,000");
        assert_eq!(grouped(22_571_194.4), "22,571,194");
        assert_eq!(signed_percent(0.04321), "+4.32 %");
        assert_eq!(signed_percent(-0.000_001), "+0.00 %");
        assert_eq!(interval(-0.01, 0.02), "-1.00 % … +2.00 %");
        assert_eq!([4.25, 9.996, 31.66, 420.4, 1e6].map(ratio), ["4.25", "10.0", "31.7", "420", "1000000"]);
        assert_eq!([0.5, 0.0123, 0.09996, 0.000_4].map(ratio), ["0.500", "0.0123", "0.100", "0.000400"]);
        assert_eq!(
            [1.188, 0.9996, 0.988, 34.123, 9.9996].map(times),
            ["1.188", "1.000", "0.988", "34.12", "10.00"]
        );
        assert_eq!([0.01234, 0.0, 3412.3, f64::INFINITY].map(times), ["0.0123", "0", "3412", "∞"]);
        assert_eq!([2e-16, 3e40].map(times), ["2e-16", "3e40"]);
        assert_eq!([0.0432, 0.0, 0.621, 1e-5].map(part), ["4.32 %", "none", "62.1 %", "0.00100 %"]);
        assert_eq!([0.05, 0.0025, 0.1, 1.0].map(percent), ["5 %", "0.25 %", "10 %", "100 %"]);
        assert_eq!([0.0, 0.000_02].map(percent), ["0 %", "0.002 %"]);
        assert_eq!([0.1, 90.0, 200.0, 9000.0].map(time), ["1 second", "90 seconds", "3 minutes", "3 hours"]);
        assert_eq!(probability(0.000_01), "< 0.0001");
        assert_eq!(bytes(16 << 30), "16 GiB");
        assert_eq!(counted(1, "run"), "1 run");
    }
}
