package import Ground

/// The file `member` beside a journal: whom the node is to others, and since when; see
/// <doc:Journal>.
package struct JournalIdentity: Hashable, Sendable {
    /// Under this id the node takes part in majorities.
    package var node: NodeID
    /// In this boot epoch its journal was begun, or begun anew; 0 if it never was.
    ///
    /// What a run promises to others is in the journal first, and the journal of a run is begun
    /// before this names it: so a start that ended before that has promised nothing. Only after a
    /// loss it is named first, so that the loss is found again until there is another journal.
    package var beganInEpoch: UInt64

    package init(node: NodeID, begun: UInt64) {
        self.node = node
        self.beganInEpoch = begun
    }

    /// One that finds at its next start that it has promised more than it keeps.
    package static func abandoned(_ node: NodeID) -> JournalIdentity {
        JournalIdentity(node: node, begun: .max)
    }

    /// Size in bytes.
    package static let bytesCount = NodeID.bytesCount + 16

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(node)
        bytes.appendLittle(beganInEpoch)
        bytes.appendLittle(XXH64.hash(bytes.span, seed: 0))
        return bytes
    }

    package init(_ bytes: Span<UInt8>) throws(JournalDamage.Reason) {
        guard bytes.count >= Self.bytesCount else { throw .truncated }
        let end = Self.bytesCount - 8
        guard bytes.little64(at: end) == XXH64.hash(bytes.extracting(0..<end), seed: 0) else {
            throw .checksum
        }
        node = NodeID(bytes, at: 0)
        beganInEpoch = bytes.little64(at: NodeID.bytesCount)
    }

    /// What tells that a journal is not the one that this member has promised to keep.
    package enum Loss: Hashable, Sendable, CustomStringConvertible {
        case missing
        /// The journal was written last in the boot epoch `found`.
        case older(found: UInt64, begun: UInt64)
        /// Something bears this boot epoch, which has not come yet.
        case fromFutureEpoch(UInt64)
        /// The member was known to have started more often than this directory.
        case restoredCopy

        package var description: String {
            switch self {
            case .missing: "there is none"
            case .older(let found, let begun):
                "it ends in start \(found), and start \(begun) has written to it"
            case .restoredCopy: "the directory is an older copy of the node's"
            case .fromFutureEpoch(let epoch): "start \(epoch) wrote it, which has not come yet"
            }
        }
    }

    /// What is wrong with a journal that was written last in the boot epoch `found`, nil if there
    /// is none, at a start in `epoch`; nil if nothing is.
    package func loss(of found: UInt64?, at epoch: UInt64) -> Loss? {
        guard beganInEpoch != .max else { return .restoredCopy }
        let newest = max(found ?? 0, beganInEpoch)
        guard newest < epoch else { return .fromFutureEpoch(newest) }
        guard let found else { return beganInEpoch == 0 ? nil : .missing }
        return found < beganInEpoch ? .older(found: found, begun: beganInEpoch) : nil
    }
}
