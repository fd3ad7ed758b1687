/// A receipt as who has asked for it reads it; ``ReceiptDocument`` is what writes it.
package struct ReceiptReport: Hashable, Sendable, Decodable {
    package struct Member: Hashable, Sendable, Decodable {
        package var node: String
        /// `confirmed`, `pending` or `unreachable`.
        package var state: String
        package var elapsedMilliseconds: Int64?
        package var unreachableMilliseconds: Int64?

        private enum CodingKeys: String, CodingKey {
            case node
            case state = "standing"
            case elapsedMilliseconds = "elapsed_ms"
            case unreachableMilliseconds = "unreachable_since_ms_ago"
        }
    }

    /// One of the four.
    package struct Target: Hashable, Sendable, Decodable {
        package var url: String?
        package var prefix: String?
        package var tag: String?
        package var everything: Bool?

        /// What it covers, in a few words.
        package var summary: String {
            if let url { return "url \(url)" }
            if let prefix { return "prefix \(prefix)" }
            return tag.map { "tag \($0)" } ?? "everything"
        }

        /// Greater for what may cover more.
        fileprivate var breadth: Int {
            if url != nil { return 0 }
            if prefix != nil { return 2 }
            return tag == nil ? 3 : 1
        }
    }

    package struct Page: Decodable {
        package var purges: [ReceiptReport]
    }

    package var receipt: String
    package var id: String
    package var mode: String
    package var issuer: String?
    /// The node that was asked; nil if it is of a version that does not say so.
    package var observer: String?
    package var ageMilliseconds: Int64
    package var isFullyConfirmed: Bool
    package var confirmed: Int
    package var pending: Int
    package var unreachable: Int
    package var majorityMilliseconds: Int64?
    package var millisecondsUntilBounded: Int64?
    package var members: [Member]
    package var areMembersKnown: Bool?
    package var targets: [Target]

    private enum CodingKeys: String, CodingKey {
        case receipt, id, mode, confirmed, pending, unreachable, members, targets
        case issuer = "issued_by"
        case observer = "seen_by"
        case ageMilliseconds = "held_ms"
        case isFullyConfirmed = "all_confirmed"
        case areMembersKnown = "members_known"
        case majorityMilliseconds = "majority_ms"
        case millisecondsUntilBounded = "bounded_in_ms"
    }

    /// What it covers, in a few words: the broadest target, and how many there are besides; empty
    /// for none.
    package var targetSummary: (main: String, more: String) {
        guard let broadest = targets.max(by: { $0.breadth < $1.breadth }) else { return ("", "") }
        return (broadest.summary, targets.count > 1 ? " and \(targets.count - 1) more" : "")
    }

    /// Nobody who can be reached is waited for: what is missing will not come soon.
    package var isSettled: Bool { isFullyConfirmed || (pending == 0 && unreachable > 0) }
}
