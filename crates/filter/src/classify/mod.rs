//! Finds the rules that can match a packet without trying all: vectors of bits (Lakshman and Stiliadis 1998) with a summary
//! (Baboescu and Varghese 2001).
//!
//! A packet has six properties, the dimensions. In each, a range map leads from the packet's value to a row, which has a bit
//! for each rule that accepts the value or does not ask about this dimension. The rules whose bits are set in all dimensions
//! are candidates, in order; each is then tested in full, so a dimension may know less than a rule asks (tables, masks, ICMP
//! types), never more.
//!
//! A summary has one bit for each word of a row. So 10,000 rules cost a lookup three words of summary for each dimension and
//! then only the words in which all dimensions have bits. Where one dimension leaves a rule or two, the packet is not looked up in
//! those after it.

mod build;
mod dimension;
mod intervals;
mod rows;
mod walk;

pub(crate) use build::Classifier;
pub(crate) use walk::Walk;
