//! Dumps: everything there is of one part, and nothing else.

use super::Mirror;
use crate::netlink::event::DumpPart;

impl Mirror {
    /// A dump of this part begins: the events that follow are what there is.
    pub fn begin(&mut self, part: DumpPart) {
        match part {
            DumpPart::Forwarding | DumpPart::Forwarding6 => {}
            DumpPart::Rules => self.rules.mark(),
            DumpPart::Links => self.links.mark(),
            DumpPart::Addresses => {
                self.links.forget_addresses();
                self.view_changed = true;
            }
            DumpPart::Neighbors => self.neighbors.mark(),
            DumpPart::Objects => self.sets.mark(),
            DumpPart::Inet => self.inet.begin_dump(),
            DumpPart::Inet6 => self.inet6.begin_dump(),
        }
    }

    /// And was whole: what it did not mention is gone. Returns how much that was.
    pub fn end(&mut self, part: DumpPart) -> usize {
        match part {
            DumpPart::Links => {
                let gone = self.links.unseen();
                gone.iter().for_each(|index| self.remove_link(*index));
                gone.len()
            }
            DumpPart::Forwarding | DumpPart::Forwarding6 | DumpPart::Addresses => 0,
            DumpPart::Rules => {
                let gone = self.rules.sweep();
                self.view_changed |= gone > 0;
                gone
            }
            DumpPart::Neighbors => {
                let gone = self.neighbors.unseen();
                gone.iter().for_each(|(link, address)| self.remove_neighbor(*link, *address));
                gone.len()
            }
            DumpPart::Objects => {
                let gone = self.sets.unseen();
                gone.iter().for_each(|id| self.remove_object(*id));
                gone.len()
            }
            DumpPart::Inet => self.inet.end_dump(&mut self.sets),
            DumpPart::Inet6 => self.inet6.end_dump(&mut self.sets),
        }
    }
}
