package import Ground

extension Membership {
    /// The constants of the protocol's pace and its limits; the defaults are what a node uses.
    ///
    /// Pace after memberlist's for local networks (DefaultLANConfig), which Lifeguard was measured
    /// with.
    package struct Settings: Hashable, Sendable {
        /// Between two probes by one node, while its local health is good.
        package var probeInterval = Interval.seconds(1)
        /// After a ping, before others are asked.
        package var probeTimeout = Interval.milliseconds(500)
        /// Members that are asked to ping a silent one.
        package var indirectProbes = 3
        /// The worst local health, which multiplies interval and time-out by one more than this.
        package var healthMax = 8
        /// Times log10 of the members, at least 1, times ``probeInterval``: the least time that a
        /// suspected member has.
        package var suspicionMultiplier: Int64 = 4
        /// The most time that a suspected member has is so many times the least.
        package var suspicionMaxFactor: Int64 = 6
        /// Accusers beside the first after whom a suspected member has the least time.
        package var confirmations = 2
        /// Times the digits of the number of members: how often a change is repeated.
        package var retransmitMultiplier = 4
        /// Records that ride on one ping, ack or ping request.
        package var piggybackMax = 6
        /// Records in one message of news.
        package var pushMax = 32
        /// At most so long the push of a change waits for somebody else's.
        package var pushDelayMax = Interval.milliseconds(200)
        /// Between two exchanges of tables by one node, in a cluster of up to 32.
        package var exchangeInterval = Interval.seconds(30)
        /// Live and gone ones, this node included.
        package var membersMax = 256
        /// The shell resolves the seeds' names so often.
        package var resolveInterval = Interval.seconds(10)
        /// The shell gives up a dial that has brought no hello after so long.
        package var dialTimeout = Interval.seconds(5)
        /// Addresses of seeds, the lowest.
        package var seedsMax = 256
        /// Dials under way.
        package var dialsMax = 16
        /// The first wait after a failed dial; it doubles with each.
        package var dialDelayMin = Interval.seconds(1)
        /// The longest wait between dials to seeds and live members.
        package var dialDelayMax = Interval.seconds(10)
        /// The longest wait between dials to dead members.
        package var deadDialDelayMax = Interval.seconds(60)
        /// One's own address is let alone for so long.
        package var selfDialDelay = Interval.seconds(300)
        /// A connection on which a ping is not answered for so long is replaced.
        package var pingTimeoutMax = Interval.seconds(10)
        /// Of two connections of one pair the member with the smaller id closes the one that is not
        /// used after so long, the other member after twice as long.
        package var spareLifetimeMax = Interval.seconds(10)
        /// Between two questions for tables because connections were opened.
        package var tableRequestInterval = Interval.milliseconds(500)
        /// The accepting side leaves the first question to the dialling side for so long.
        package var tableRequestDelay = Interval.milliseconds(300)
        /// A tick later than this was late because this process stood still.
        package var stallThreshold = Interval.milliseconds(500)
        /// Of two processes with one id that meet, one waits for so long for the other's claim.
        package var duplicateTimeout = Interval.seconds(2)
        /// A process that is younger than this is the later of two with one id.
        package var seniorityAge = Interval.seconds(30)
        /// The leave waits for so long for those who do not answer.
        package var leaveTimeout = Interval.seconds(2)

        package init() {}
    }
}
