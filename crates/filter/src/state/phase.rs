/// How far one end of a flow has come. TCP uses all phases (RFC 9293, section 3.3.2, reduced to what a filter between the
/// ends can know); other protocols use the first three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    /// It has sent nothing.
    #[default]
    Silent,
    /// It has sent a packet; with TCP, its SYN or the first segment that was seen.
    Opened,
    /// The other end has answered; with TCP, acknowledged its SYN.
    Established,
    /// It has sent a FIN.
    Closing,
    /// Its FIN was acknowledged.
    Finished,
    /// A RST was sent.
    Reset,
}
