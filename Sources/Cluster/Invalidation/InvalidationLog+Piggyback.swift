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
            guard let record = record(name) else {
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
        guard var line = peers[node], line.connection == untold.connection else { return }
        line.sentCount = max(line.sentCount ?? 0, untold.appliedCount)
        peers[node] = line
    }

    /// Records that this node's own records up to `number` are queued to `node`, ahead of later
    /// queries.
    ///
    /// Must not be called for records that the connection refused.
    package mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        guard var line = peers[node], line.pushedNumber < number else { return }
        line.pushedNumber = number
        peers[node] = line
    }
}

extension PeerProgress {
    /// Returns true if the member need not receive the record.
    fileprivate func covers(_ name: RecordID, own: ProcessID) -> Bool {
        let isOwn = name.stream == own
        return (isOwn && name.number <= pushedNumber)
            || name.number <= syncedCounts[name.stream] ?? 0
    }
}

/// The knowledge that this node and a connected member have of each other's positions.
struct PeerProgress: Sendable {
    /// The connection in use.
    let connection: ConnectionID
    /// The count of invalidations applied up to which the member was informed; `nil` if nothing was
    /// sent.
    var sentCount: UInt64?
    /// The number up to which this node's own records were pushed, ahead of the next query.
    var pushedNumber: UInt64 = 0
    /// The positions that the member reports to have synced without gaps.
    var syncedCounts = SortedTable<ProcessID, UInt64>()
}
