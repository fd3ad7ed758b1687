package import Ground

/// The file `member` beside a journal: the node's id in majorities and the start of its journal;
/// see <doc:Journal>.
package struct JournalIdentity: Hashable, Sendable {
    /// The id under which the node takes part in majorities.
    package var node: NodeID
    /// The boot epoch in which the journal was last begun; 0 if it never was.
    ///
    /// A process's promises to other nodes are in the journal first, and its journal is begun
    /// before this file names it. So a start that ended before that has promised nothing. Only
    /// after a loss this file is written first, so that the loss is detected again until there is a
    /// new journal.
    package var beganInEpoch: UInt64

    /// Creates an identity from its parts.
    package init(node: NodeID, beganInEpoch: UInt64) {
        self.node = node
        self.beganInEpoch = beganInEpoch
    }

    /// Returns the identity of a restored copy, which reports ``Loss/restoredCopy`` at its next
    /// start.
    package static func abandoned(_ node: NodeID) -> JournalIdentity {
        JournalIdentity(node: node, beganInEpoch: .max)
    }

    /// The encoded size in bytes.
    package static let bytesCount = NodeID.bytesCount + 16

    /// The encoded identity.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(node)
        bytes.appendLittle(beganInEpoch)
        bytes.appendLittle(XXH64.hash(bytes.span, seed: 0))
        return bytes
    }

    /// Decodes an identity.
    ///
    /// - Throws: ``JournalDamage/Reason/truncated`` or ``JournalDamage/Reason/checksum``.
    package init(_ bytes: Span<UInt8>) throws(JournalDamage.Reason) {
        guard bytes.count >= Self.bytesCount else { throw .truncated }
        let end = Self.bytesCount - 8
        guard bytes.little64(at: end) == XXH64.hash(bytes.extracting(0..<end), seed: 0) else {
            throw .checksum
        }
        node = NodeID(bytes, at: 0)
        beganInEpoch = bytes.little64(at: NodeID.bytesCount)
    }

    /// The reason why a journal is not the one that this member has promised to keep.
    package enum Loss: Hashable, Sendable, CustomStringConvertible {
        /// There is no journal.
        case missing
        /// The journal was last written in the boot epoch `found`, before `begun`.
        case older(found: UInt64, begun: UInt64)
        /// The journal or this file names this boot epoch, which has not begun yet.
        case fromFutureEpoch(UInt64)
        /// Other nodes have seen the member start more often than this directory has.
        case restoredCopy

        /// The loss as a clause for operators.
        package var description: String {
            switch self {
            case .missing: "it is missing"
            case .older(let found, let begun):
                "it ends with start \(found), but start \(begun) wrote to it"
            case .restoredCopy: "the directory is an older copy"
            case .fromFutureEpoch(let epoch): "it has boot epoch \(epoch), which is in the future"
            }
        }
    }

    /// Returns the loss that the boot epochs reveal, or `nil` if there is none.
    ///
    /// - Parameters:
    ///   - found: The boot epoch that last wrote the journal; `nil` if there is no journal.
    ///   - epoch: The boot epoch of this start.
    /// - Returns: The loss, or `nil`.
    package func loss(of found: UInt64?, at epoch: UInt64) -> Loss? {
        guard beganInEpoch != .max else { return .restoredCopy }
        let newest = max(found ?? 0, beganInEpoch)
        guard newest < epoch else { return .fromFutureEpoch(newest) }
        guard let found else { return beganInEpoch == 0 ? nil : .missing }
        return found < beganInEpoch ? .older(found: found, begun: beganInEpoch) : nil
    }
}
