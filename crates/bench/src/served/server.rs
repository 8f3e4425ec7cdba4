//! The process that serves slices.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use fullview_lab::{Bench, Experiment, Panel, PanelError, SubjectError, Validity, Verified};
use serde::Serialize;

use super::protocol::{
    ArmFindings, Hello, PanelRequest, Reply, Request, ServedArm, ServedFailure, ServedFindings, ServedMember,
    ServedPanelFacts, SliceRequest, nanoseconds, written,
};
use crate::error::BenchError;
use crate::settings::Settings;
use crate::subject::RouterBench;

/// Answers requests until they end.
pub fn serve(requests: &mut dyn BufRead, replies: &mut dyn Write) -> io::Result<()> {
    let mut pipes = Pipes { requests, replies };
    pipes.reply(&Reply::Hello(Hello::of_this_program()))?;
    while let Some(request) = pipes.request()? {
        match request {
            Ok(Request::Panel(panel)) => pipes.panel(&panel)?,
            Ok(Request::End) => return pipes.reply(&Reply::Ended),
            Ok(Request::Slice(_) | Request::Findings) => pipes.fail(None, "no panel is ready".into())?,
            Err(error) => pipes.fail(None, format!("not a request: {error}"))?,
        }
    }
    Ok(())
}

struct Pipes<'a> {
    requests: &'a mut dyn BufRead,
    replies: &'a mut dyn Write,
}

impl Pipes<'_> {
    /// The next request; `None` at the end.
    fn request(&mut self) -> io::Result<Option<Result<Request, serde_json::Error>>> {
        let mut line = String::new();
        let count = self.requests.read_line(&mut line)?;
        Ok((count > 0).then(|| serde_json::from_str(&line)))
    }

    fn reply(&mut self, reply: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        self.replies.write_all(&line)?;
        self.replies.flush()
    }

    fn fail(&mut self, member: Option<usize>, message: String) -> io::Result<()> {
        self.reply(&Reply::Error(ServedFailure { member, message }))
    }

    /// Makes a panel and serves it until it ends.
    fn panel(&mut self, asked: &PanelRequest) -> io::Result<()> {
        let (mut members, mut failed) = (Vec::new(), None);
        for (member, settings) in asked.members.iter().enumerate() {
            match serde_json::from_value::<Settings>(settings.clone()) {
                Ok(settings) => members.push(settings),
                Err(error) => _ = failed.get_or_insert((Some(member), error.to_string())),
            }
        }
        let failed = failed.or_else(|| match self.serve_panel(asked, &members) {
            Ok(()) => None,
            Err(PanelError::Member { member, source }) => Some((Some(member), source.to_string())),
            Err(error) => Some((None, error.to_string())),
        });
        failed.map_or(Ok(()), |(member, message)| self.fail(member, message))
    }

    fn serve_panel(&mut self, asked: &PanelRequest, members: &[Settings]) -> Result<(), PanelError> {
        let bed = |error: BenchError| PanelError::Bed(error.into());
        let mut bench = bench(asked, members).map_err(bed)?;
        let mut work = |panel: &mut dyn Panel| {
            self.turns(panel, members.len()).map_err(|error| PanelError::Bed(error.into()))
        };
        bench.panel(members, &asked.family, asked.seed, &mut work)
    }

    fn turns(&mut self, panel: &mut dyn Panel, members: usize) -> io::Result<()> {
        let facts = facts(panel, members);
        self.reply(&Reply::Ready(facts))?;
        while let Some(request) = self.request()? {
            match request {
                Ok(Request::Slice(SliceRequest { arm, .. })) if !is_there(panel, members, arm) => {
                    self.fail(None, "the panel has no such arm".into())?
                }
                Ok(Request::Slice(slice)) => self.slice(panel, slice)?,
                Ok(Request::Findings) => self.reply(&Reply::Findings(findings(panel, members)))?,
                Ok(Request::End) => return self.reply(&Reply::Ended),
                Ok(Request::Panel(_)) => self.fail(None, "the panel before has not ended".into())?,
                Err(error) => self.fail(None, format!("not a request: {error}"))?,
            }
        }
        Ok(())
    }

    fn slice(&mut self, panel: &mut dyn Panel, asked: SliceRequest) -> io::Result<()> {
        let [lead_in, length] = [asked.lead_in_ns, asked.length_ns].map(Duration::from_nanos);
        match panel.slice(asked.arm.into(), lead_in, length) {
            Ok(slice) => self.reply(&Reply::Slice(slice.into())),
            Err(error) => self.fail(None, error.to_string()),
        }
    }
}

/// The bench of one panel: it checks the settings and loads the tables.
fn bench(asked: &PanelRequest, members: &[Settings]) -> Result<RouterBench, BenchError> {
    let variant = |(number, set): (usize, &Settings)| serde_json::json!({ "name": format!("member-{number}"), "label": format!("member {number}"), "set": set });
    let experiment = serde_json::json!({
        "title": "served slices",
        "seed": asked.campaign_seed,
        "families": [asked.family],
        // The requests set the length of each slice. Some kinds refuse an experiment that does not.
        "window": { "warmup_s": 0.0, "measure_s": 1.0, "slice_ms": 1.0 },
        "variants": members.iter().enumerate().map(variant).collect::<Vec<_>>(),
    });
    let experiment: Experiment<Settings> =
        serde_json::from_value(experiment).map_err(BenchError::Settings)?;
    RouterBench::new(&experiment)
}

fn is_there(panel: &dyn Panel, members: usize, arm: ServedArm) -> bool {
    match arm {
        ServedArm::Control(control) => control < panel.controls(),
        ServedArm::Member(member) => member < members,
    }
}

fn facts(panel: &mut dyn Panel, members: usize) -> ServedPanelFacts {
    let limits = panel.slice_limits();
    let [shortest_ns, longest_ns] = [limits.shortest, limits.longest].map(nanoseconds);
    let members = (0..members).map(|member| served_member(panel, member)).collect();
    let (controls, subtracts, paced) = (panel.controls(), panel.subtracts(), panel.is_paced());
    ServedPanelFacts { controls, subtracts, paced, shortest_ns, longest_ns, members }
}

fn served_member(panel: &mut dyn Panel, member: usize) -> ServedMember {
    let control = panel.control_of(member);
    let verified: Result<Verified, SubjectError> = panel.verify(member);
    let set_aside = match &verified {
        Ok(Verified::SetAside(reason)) => Some(*reason),
        _ => None::<Validity>,
    };
    let wrong = verified.err().map(|error| error.to_string());
    ServedMember { control, set_aside: set_aside.map(written), wrong }
}

fn findings(panel: &mut dyn Panel, members: usize) -> ServedFindings {
    let of_members = (0..members).map(|member| ArmFindings::from(panel.findings(member))).collect();
    ServedFindings { members: of_members, bed: panel.bed_findings().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANEL: &str = r#"{"panel":{"family":"inet","campaign_seed":1,"seed":7,"members":[
        {"table":{"source":"two-routes"},"traffic":{"flows":20},"load":{"shape":"one-core"},"router":{"algorithm":"radix"}},
        {"table":{"source":"two-routes"},"traffic":{"flows":20},"load":{"shape":"one-core"},"router":{"algorithm":"dxr"}}]}}"#;

    /// The answers to these lines.
    fn answers(requests: &[&str]) -> Vec<Reply> {
        let lines: String = requests.iter().map(|line| line.replace('\n', "") + "\n").collect();
        let mut replies = Vec::new();
        serve(&mut lines.as_bytes(), &mut replies).unwrap();
        String::from_utf8(replies).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn failure(reply: &Reply) -> (Option<usize>, &str) {
        match reply {
            Reply::Error(failure) => (failure.member, &failure.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_panel_is_served_until_it_ends() {
        let slice = |arm| format!(r#"{{"slice":{{"arm":{{{arm}}},"lead_in_ns":1000,"length_ns":200000}}}}"#);
        let (control, member) = (slice(r#""control":0"#), slice(r#""member":1"#));
        let replies =
            answers(&[PANEL, &control, &member, "\"findings\"", "\"end\"", PANEL, "\"end\"", "\"end\""]);
        let [hello, ready, of_control, of_member, found, ended, again, ended_again, end] = &*replies else {
            panic!("{replies:?}")
        };
        assert_eq!(*hello, Reply::Hello(Hello::of_this_program()));
        let member = ServedMember { control: 0, set_aside: None, wrong: None };
        let Reply::Ready(facts) = ready else { panic!("{ready:?}") };
        assert_eq!(
            (facts.controls, facts.subtracts, &*facts.members),
            (1, true, &[member.clone(), member][..])
        );
        for slice in [of_control, of_member] {
            assert!(
                matches!(slice, Reply::Slice(slice) if slice.counted > 0 && slice.ns >= 200_000),
                "{slice:?}"
            );
        }
        let Reply::Findings(found) = found else { panic!("{found:?}") };
        assert!(found.members[1].counters["received"] > 0.0 && found.members[1].reasons.is_empty());
        assert_eq!([ended, ended_again, end], [&Reply::Ended; 3]);
        assert_eq!(again, ready);
    }

    #[test]
    fn requests_that_do_not_fit_are_answered_and_the_process_goes_on() {
        let slice = r#"{"slice":{"arm":{"member":0},"lead_in_ns":0,"length_ns":1}}"#;
        let unknown = PANEL.replace("\"dxr\"", "\"dxrr\"");
        let setting = PANEL.replace("\"flows\"", "\"flow\"");
        let replies = answers(&[slice, "nonsense", &unknown, &setting, PANEL, PANEL, "\"end\""]);
        assert_eq!(failure(&replies[1]).1, "no panel is ready");
        assert!(failure(&replies[2]).1.starts_with("not a request"), "{:?}", replies[2]);
        assert!(failure(&replies[3]).1.contains("dxrr"), "{:?}", replies[3]);
        assert_eq!(failure(&replies[4]).0, Some(0));
        assert!(failure(&replies[4]).1.contains("unknown field `flow`"), "{:?}", replies[4]);
        assert!(matches!(replies[5], Reply::Ready(_)));
        assert_eq!(failure(&replies[6]).1, "the panel before has not ended");
        assert_eq!(replies[7], Reply::Ended);
    }

    /// An arm that does not exist must not end the process by a panic.
    #[test]
    fn an_arm_that_is_not_there_is_refused() {
        let slice = r#"{"slice":{"arm":{"member":2},"lead_in_ns":0,"length_ns":1}}"#;
        let control = r#"{"slice":{"arm":{"control":1},"lead_in_ns":0,"length_ns":1}}"#;
        let replies = answers(&[PANEL, slice, control, "\"end\""]);
        assert_eq!(failure(&replies[2]).1, "the panel has no such arm");
        assert_eq!(failure(&replies[3]).1, "the panel has no such arm");
    }
}
