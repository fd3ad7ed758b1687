package import Ground

/// The constants of the membership protocol: times and limits.
///
/// The defaults are those of a node. The times follow memberlist's for local networks
/// (DefaultLANConfig), with which Lifeguard was measured.
package struct MembershipSettings: Hashable, Sendable {
    /// The time between two probes by one node while its local health is good.
    package var probeInterval = Interval.seconds(1)
    /// The time after a ping before other members are asked to ping.
    package var probeTimeout = Interval.milliseconds(500)
    /// The number of members that are asked to ping a silent one.
    package var indirectProbes = 3
    /// The worst local health score; a score of n multiplies interval and time-out by n + 1.
    package var healthMax = 8
    /// The shortest suspicion time, in units of ``probeInterval`` times log10 of the members
    /// (at least 1).
    package var suspicionMultiplier: Int64 = 4
    /// The longest suspicion time, as a multiple of the shortest.
    package var suspicionMaxFactor: Int64 = 6
    /// The number of accusers after the first that reduce a suspicion to the shortest time.
    package var confirmations = 2
    /// How often a change is piggybacked, as a multiple of the decimal digits of the number of
    /// members.
    package var retransmitMultiplier = 4
    /// Maximum number of records piggybacked on a ping, ack or ping request.
    package var piggybackMax = 6
    /// Maximum number of records in one `updates` message.
    package var pushMax = 32
    /// Maximum delay of a push, in which another member's push may make it unnecessary.
    package var pushDelayMax = Interval.milliseconds(200)
    /// The time between two exchanges of tables by one node, in a cluster of up to 32.
    package var exchangeInterval = Interval.seconds(30)
    /// Maximum number of members, live or not, including this node.
    package var membersMax = 256
    /// The interval at which the shell resolves the seeds' names.
    package var resolveInterval = Interval.seconds(10)
    /// The time without a hello after which the shell gives up a dial.
    package var dialTimeout = Interval.seconds(5)
    /// Maximum number of seed addresses; the lowest are kept.
    package var seedsMax = 256
    /// Maximum number of dials in progress.
    package var dialsMax = 16
    /// Maximum wait after the first failed dial, at least half of which passes; doubles with each
    /// further one.
    package var dialDelayMin = Interval.seconds(1)
    /// Maximum wait between dials to seeds and live members.
    package var dialDelayMax = Interval.seconds(10)
    /// Maximum wait between dials to dead members.
    package var deadDialDelayMax = Interval.seconds(60)
    /// The wait before this node's own address is dialled again.
    package var selfDialDelay = Interval.seconds(300)
    /// The time after a ping for which a connection may be silent before it is closed.
    package var pingTimeoutMax = Interval.seconds(10)
    /// Maximum lifetime of an unused second connection of a pair; it is closed by the member
    /// with the smaller id, or by the other member after twice this time.
    package var spareLifetimeMax = Interval.seconds(10)
    /// The minimum time between two table requests after connections opened.
    package var tableRequestInterval = Interval.milliseconds(500)
    /// The delay with which the accepting side requests a table, as the dialling side requests
    /// first.
    package var tableRequestDelay = Interval.milliseconds(300)
    /// The lateness of a tick from which this process counts as having stood still.
    package var stallThreshold = Interval.milliseconds(500)
    /// The time for which one of two processes with one id waits for the other's claim.
    package var duplicateTimeout = Interval.seconds(2)
    /// The age below which a process is taken as the later of two with one id.
    package var seniorityAge = Interval.seconds(30)
    /// Maximum time for which a leaving node waits for acknowledgements.
    package var leaveTimeout = Interval.seconds(2)

    /// Creates the default settings.
    package init() {}
}
