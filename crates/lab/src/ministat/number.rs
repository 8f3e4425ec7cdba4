//! The format `%g` of C's printf (ISO C17, 7.21.6.1), which Rust's formatting lacks.

/// Formats `value` with `significant` digits (at least one) and without trailing zeros. The notation is fixed if the
/// decimal exponent is from −4 to `significant` − 1, otherwise scientific with at least two digits of exponent.
pub fn general(value: f64, significant: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // The exponent is that of the rounded value: 9.99e5 with two digits is 1e+06.
    let decimals = significant.max(1) - 1;
    let scientific = format!("{value:.decimals$e}");
    // Scientific notation always has an exponent, so neither of these defaults is ever used.
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match usize::try_from(exponent) {
        Ok(up) if up <= decimals => without_trailing_zeros(&format!("{value:.*}", decimals - up)),
        Err(_) if exponent >= -4 => {
            without_trailing_zeros(&format!("{value:.*}", decimals + exponent.unsigned_abs() as usize))
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.unsigned_abs())
        }
    }
}

fn without_trailing_zeros(digits: &str) -> String {
    if !digits.contains('.') {
        return digits.to_owned();
    }
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::general;

    /// GNU coreutils and FreeBSD print this for `printf '%.8g'` and `printf '%g'`.
    #[test]
    fn agrees_with_printf() {
        for (value, eight, six) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.0, "1", "1"),
            (-12.5, "-12.5", "-12.5"),
            (1_206_827.25, "1206827.2", "1.20683e+06"),
            (1_206_827.75, "1206827.8", "1.20683e+06"),
            (12_345_678.5, "12345678", "1.23457e+07"),
            (12_345_679.5, "12345680", "1.23457e+07"),
            (99_999_999.5, "1e+08", "1e+08"),
            (999_999.5, "999999.5", "1e+06"),
            (0.0001, "0.0001", "0.0001"),
            (0.000_099_999_999_99, "0.0001", "0.0001"),
            (0.000_012_345, "1.2345e-05", "1.2345e-05"),
            (1e100, "1e+100", "1e+100"),
            (5e-324, "4.9406565e-324", "4.94066e-324"),
            (0.1 + 0.2, "0.3", "0.3"),
            (63_210.0, "63210", "63210"),
        ] {
            assert_eq!(general(value, 8), eight, "%.8g of {value:e}");
            assert_eq!(general(value, 6), six, "%g of {value:e}");
        }
    }

    #[test]
    fn nan_and_infinities_have_names() {
        assert_eq!(general(f64::NAN, 6), "nan");
        assert_eq!(general(f64::INFINITY, 6), "inf");
        assert_eq!(general(f64::NEG_INFINITY, 6), "-inf");
    }

    #[test]
    fn zero_digits_mean_one() {
        assert_eq!(general(2.6, 0), "3");
    }
}
