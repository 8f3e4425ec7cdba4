#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    Inet,
    Inet6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    In,
    Out,
}
