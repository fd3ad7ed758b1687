package import Ground

/// The invalidations that must accompany the next query to a peer (Design, "Queries carry
/// knowledge").
package struct UnsentInvalidations: Hashable, Sendable {
    /// The records that the member may lack, as far as a query can carry them.
    package var records: [InvalidationRecord]
    /// The positions that this node has applied, if the records did not fit.
    ///
    /// If they do not fit in a query either, they precede it in a frame of their own.
    package var positions: [StreamPosition]
    /// The count of invalidations applied up to which this is complete.
    let appliedCount: UInt64
    /// The connection on which it must be sent.
    let connection: ConnectionID

    /// The message to send ahead of the query on the same connection; `nil` if the query carries
    /// all.
    package var precedingMessage: InvalidationMessage? {
        positions.count > PeerProtocol.queryPositionsMax ? .appliedPositions(positions) : nil
    }

    /// True if there is nothing to send.
    package var isEmpty: Bool { records.isEmpty && positions.isEmpty }
}

extension InvalidationLog {
    /// Returns what the next query to `node` must carry; `nil` without a connection.
    ///
    /// ``invalidationsSent(_:to:)`` must be called once it was sent, or if it is empty; else it is
    /// returned again.
    package func unsentInvalidations(to node: NodeID) -> UnsentInvalidations? {
        guard let line = peers[node] else { return nil }
        var untold = UnsentInvalidations(
            records: [], positions: [], appliedCount: history.count, connection: line.connection)
        if let toldCount = line.sentCount, toldCount >= history.count { return untold }
        guard let names = line.sentCount.flatMap({ history.names(after: $0) }) else {
            untold.positions = appliedPositions
            return untold
        }
        var bytes = 0
        for name in names where !line.covers(name, own: process) {
            guard let record = streams.record(name) else {
                // The record was dropped already.
                bytes = .max
                break
            }
            // A reader relies on a consensus record being synced at its writer, and no entry
            // depends on it.
            if Invalidation.isConsensus(record.encodedContent) { continue }
            bytes += record.bytesCount + StructureReader.fieldHeaderBytes
            guard bytes <= PeerProtocol.invalidationBytesMax else { break }
            untold.records.append(record)
        }
        if bytes > PeerProtocol.invalidationBytesMax {
            untold.records.removeAll()
            untold.positions = appliedPositions
        }
        return untold
    }

    /// Records that `untold` was sent to `node`; ignored if another connection is in use since.
    package mutating func invalidationsSent(_ untold: UnsentInvalidations, to node: NodeID) {
        peers.recordSent(untold, to: node)
    }

    /// Records that this node's own records up to `number` are queued to `node`, ahead of later
    /// queries.
    ///
    /// Must not be called for records that the connection refused.
    package mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        peers.recordPushed(upTo: number, to: node)
    }
}
