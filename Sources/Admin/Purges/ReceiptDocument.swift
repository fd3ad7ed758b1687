package import Ground

/// How far one purge has come, as the node that is asked sees it; <doc:Purges> has every field.
///
/// All times are milliseconds that this node has measured; no clock of another node is in them.
package struct ReceiptDocument: Hashable, Sendable {
    package enum ConfirmationState: Hashable, Sendable {
        /// It has applied and synced the purge; this node learnt so that long after it had the
        /// purge itself.
        case confirmed(elapsedMilliseconds: Int64)
        /// There is a connection with it, and it has not said so.
        case pending
        /// There is no connection with it since that long, and it has not said so.
        case unreachable(sinceMillisecondsAgo: Int64)
    }

    package struct Member: Hashable, Sendable {
        /// 32 hexadecimal digits.
        package var node: String
        package var state: ConfirmationState

        package init(node: String, _ standing: ConfirmationState) {
            self.node = node
            self.state = standing
        }
    }

    package var name: ReceiptID
    /// The client's, or the node's that took the purge.
    package var id: [UInt8]
    package var isSoft: Bool
    /// As the record has them.
    package var targets: [PurgeTarget]
    /// The node that issued it, 32 hexadecimal digits; nil if it is of a process that is not known
    /// here any more.
    package var issuer: String?
    /// The node whose view this is, 32 hexadecimal digits: what others have learnt may differ.
    package var observer: String
    /// How long this node has had it.
    package var ageMilliseconds: Int64
    /// How long after that a majority of the counted members had it; nil if it has not.
    package var majorityMilliseconds: Int64?
    /// In how long, from now, no node serves what is covered, whether it has confirmed or not; 0 if
    /// that is so, nil if there is no majority yet or no fence.
    package var millisecondsUntilBounded: Int64?
    /// Everybody who can serve, by node id.
    package var members: [Member]
    /// Nobody else can serve.
    ///
    /// False for up to two fences after more than half of the counted members have started anew or
    /// were replaced, for nobody may know whom they had answered before.
    package var areMembersKnown: Bool

    package init(
        _ name: ReceiptID, id: [UInt8], isSoft: Bool, targets: [PurgeTarget], issuedBy: String?,
        seenBy: String, heldMilliseconds: Int64, majorityMilliseconds: Int64?,
        boundedInMilliseconds: Int64?,
        members: [Member], areMembersKnown: Bool = true
    ) {
        self.name = name
        self.id = id
        self.isSoft = isSoft
        self.targets = targets
        self.issuer = issuedBy
        self.observer = seenBy
        self.ageMilliseconds = heldMilliseconds
        self.majorityMilliseconds = majorityMilliseconds
        self.millisecondsUntilBounded = boundedInMilliseconds
        self.members = members
        self.areMembersKnown = areMembersKnown
    }

    /// The members that have confirmed, that are pending, and that cannot be reached.
    package var counts: (confirmed: Int, pending: Int, unreachable: Int) {
        members.reduce(into: (0, 0, 0)) { counts, member in
            switch member.state {
            case .confirmed: counts.0 += 1
            case .pending: counts.1 += 1
            case .unreachable: counts.2 += 1
            }
        }
    }

    /// Every node that can serve has it; a node that knows of no majority cannot say so.
    package var isFullyConfirmed: Bool {
        majorityMilliseconds != nil && areMembersKnown && !members.isEmpty
            && counts.confirmed == members.count
    }

    /// The answer to who has issued it: 200 if all have confirmed, else 202, whatever was waited
    /// for.
    ///
    /// To who asks for the receipt it is 200.
    package var issueStatusCode: UInt16 { isFullyConfirmed ? 200 : 202 }
}
