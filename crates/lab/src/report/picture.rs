//! The two files of a picture that a report may have or lack.

use std::path::Path;

use crate::archive::{remove_file, write_file};
use crate::error::LabError;

/// Writes the SVG and the PNG of a picture; removes those of an earlier report if there is no picture now.
pub(super) fn replace(
    folder: &Path,
    name: &str,
    drawing: Option<Result<(String, Vec<u8>), String>>,
) -> Result<(), LabError> {
    let [svg, png] = ["svg", "png"].map(|extension| folder.join(format!("{name}.{extension}")));
    match drawing.transpose().map_err(LabError::Chart)? {
        Some((vector, bitmap)) => {
            write_file(&svg, vector.as_bytes())?;
            Ok(write_file(&png, &bitmap)?)
        }
        None => Ok(remove_file(&svg).and_then(|()| remove_file(&png))?),
    }
}
