//! The rule language of pf.conf(5) as FreeBSD has it.
