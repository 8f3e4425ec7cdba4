//! What earlier lines of a rule set decided for later ones.

use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::rule::BlockReply;
use crate::pf::state_options::{PfStateOptions, StateBinding};

#[derive(Debug, Clone)]
pub struct Policy {
    pub block: BlockReply,
    pub binding: StateBinding,
    pub state_defaults: Option<PfStateOptions>,
    pub require_order: bool,
    pub stage: Stage,
}

/// The parts of a rule set, in the order that they must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Options,
    Normalization,
    Translation,
    Filtering,
}

impl Default for Policy {
    fn default() -> Policy {
        let (block, binding) = (BlockReply::Drop, StateBinding::Floating);
        Policy { block, binding, state_defaults: None, require_order: true, stage: Stage::Options }
    }
}

impl Policy {
    pub fn enter(&mut self, stage: Stage, position: &Position) -> PfResult<()> {
        if self.require_order && self.stage > stage {
            let problem = "Rules must be in order: options, normalization, translation, filtering";
            return Err(PfError::invalid(
                position,
                problem,
                "move the line up, or write 'set require-order no' first",
            ));
        }
        self.stage = stage;
        Ok(())
    }
}
