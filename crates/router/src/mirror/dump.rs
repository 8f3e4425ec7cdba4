//! Dumps: everything there is of one part, and nothing else.

use super::Mirror;
use crate::netlink::event::Part;

impl Mirror {
    /// A dump of this part begins: the events that follow are what there is.
    pub fn begin(&mut self, part: Part) {
        match part {
            Part::Forwarding | Part::Forwarding6 => {}
            Part::Rules => self.rules.mark(),
            Part::Links => self.links.mark(),
            Part::Addresses => {
                self.links.forget_addresses();
                self.view_changed = true;
            }
            Part::Neighbors => self.neighbors.mark(),
            Part::Objects => self.sets.mark(),
            Part::Inet => self.inet.begin_dump(),
            Part::Inet6 => self.inet6.begin_dump(),
        }
    }

    /// And was whole: what it did not mention is gone. Returns how much that was.
    pub fn end(&mut self, part: Part) -> usize {
        match part {
            Part::Links => {
                let gone = self.links.unseen();
                gone.iter().for_each(|index| self.remove_link(*index));
                gone.len()
            }
            Part::Forwarding | Part::Forwarding6 | Part::Addresses => 0,
            Part::Rules => {
                let gone = self.rules.sweep();
                self.view_changed |= gone > 0;
                gone
            }
            Part::Neighbors => {
                let gone = self.neighbors.unseen();
                gone.iter().for_each(|(link, address)| self.remove_neighbor(*link, *address));
                gone.len()
            }
            Part::Objects => {
                let gone = self.sets.unseen();
                gone.iter().for_each(|id| self.remove_object(*id));
                gone.len()
            }
            Part::Inet => self.inet.end_dump(&mut self.sets),
            Part::Inet6 => self.inet6.end_dump(&mut self.sets),
        }
    }
}
