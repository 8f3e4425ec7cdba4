use crate::state::table::Hit;

/// How many rules one pass may count for.
const MOST_RULES: usize = 3;

/// What a pass did besides its verdict, so that the same can be done for the next packet of the flow.
#[derive(Clone, Copy, Debug)]
pub struct PassTrace {
    hit: Option<Hit>,
    /// Whether the next packet of the flow will be decided about in the same way.
    repeats: bool,
    counted: u8,
    rules: [u32; MOST_RULES],
}

impl PassTrace {
    /// Nothing done yet.
    pub const START: PassTrace = PassTrace { hit: None, repeats: true, counted: 0, rules: [0; MOST_RULES] };

    /// Notes that the packet was followed by a state. A second one is too many.
    #[inline(always)]
    pub(crate) fn follow(&mut self, hit: Hit) {
        self.repeats &= self.hit.is_none();
        self.hit = Some(hit);
    }

    /// Notes that a rule counted the packet.
    #[inline(always)]
    pub(crate) fn count(&mut self, rule: u32) {
        match self.rules.get_mut(usize::from(self.counted)) {
            Some(place) => *place = rule,
            None => self.repeats = false,
        }
        self.counted = self.counted.saturating_add(1);
    }

    /// Notes that the next packet may be decided about differently.
    #[inline(always)]
    pub(crate) fn differs(&mut self) {
        self.repeats = false;
    }

    /// Whether the next packet of the flow will be decided about in the same way, as long as the state lives.
    pub(crate) fn repeats(&self) -> bool {
        self.repeats
    }

    /// The state that decided, if one did.
    pub(crate) fn hit(&self) -> Option<Hit> {
        self.hit
    }

    /// The rules that counted the packet.
    pub(super) fn rules(&self) -> &[u32] {
        self.rules.get(..usize::from(self.counted)).unwrap_or(&[])
    }
}
