//! The rule language of FreeBSD's ipfw(8).
