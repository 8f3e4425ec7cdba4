//! `.info` files: shell assignments since 2016, free text before. They are read, never executed.

use crate::error::{LineError, Problem, at};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    pub image: String,
    pub config: String,
    pub traffic: String,
    pub kernel: String,
    /// Times of the series, as the older form has them.
    pub times: Vec<String>,
}

pub fn parse(text: &str) -> Result<Info, LineError> {
    let mut info = Info::default();
    for line in text.lines() {
        info.take(line);
    }
    match text {
        "" => at(1, Problem::Empty),
        _ if info == Info::default() => at(1, Problem::Foreign { expected: "an .info file" }),
        _ => Ok(info),
    }
}

impl Info {
    fn take(&mut self, line: &str) {
        let assigned = line.split_once('=').map(|(key, value)| (key, value.trim().trim_matches('"')));
        let said = line.split_once(": ").map(|(key, value)| (key, value.trim()));
        match (assigned, said) {
            (Some(("IMAGE", value)), _) => self.image = value.into(),
            (Some(("CFG", value)), _) => self.config = value.into(),
            (Some(("PKTGEN", value)), _) => self.traffic = value.into(),
            (Some(("UNAME", value)), _) => self.kernel = value.into(),
            // The label of an image is the second field of its name, between dashes.
            (_, Some(("Image", path))) => {
                self.image = last(path).split('-').nth(1).unwrap_or_default().into()
            }
            (_, Some(("CFG", path))) => self.config = last(path).into(),
            (_, Some(("Start time" | "End time", _))) => self.times.push(line.into()),
            _ if line.starts_with("FreeBSD ") => self.kernel = line.into(),
            _ => {}
        }
    }

    /// The series as file names have it.
    pub fn series(&self) -> String {
        let parts = [&self.image, &self.config, &self.traffic].into_iter().filter(|part| !part.is_empty());
        parts.cloned().collect::<Vec<_>>().join(".")
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
