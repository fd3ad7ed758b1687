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

extension UnsentInvalidations {
    /// Collects what a connected member may lack of what this node has applied.
    init(for peer: PeerProgress, _ history: AppliedHistory, _ streams: StreamTable) {
        self.init(
            records: [], positions: [], appliedCount: history.count, connection: peer.connection)
        if let sentCount = peer.sentCount, sentCount >= history.count { return }
        if let names = peer.sentCount.flatMap({ history.names(after: $0) }),
            let records = Self.records(names, for: peer, streams)
        {
            self.records = records
        } else {
            positions = streams.appliedPositions
        }
    }

    /// Returns those of the records that the member may lack; `nil` if one is not held any more, or
    /// if they do not fit in a query.
    private static func records(
        _ names: [RecordID], for peer: PeerProgress, _ streams: StreamTable
    ) -> [InvalidationRecord]? {
        var bytes = 0
        var records: [InvalidationRecord] = []
        for name in names where !peer.covers(name, own: streams.own) {
            guard let record = streams.record(name) else { return nil }
            // A reader relies on a consensus record being synced at its writer, and no entry
            // depends on it.
            if Invalidation.isConsensus(record.encodedContent) { continue }
            bytes += record.bytesCount + StructureReader.fieldHeaderBytes
            guard bytes <= PeerProtocol.invalidationBytesMax else { return nil }
            records.append(record)
        }
        return records
    }
}

extension InvalidationLog {
    /// Returns what the next query to `node` must carry; `nil` without a connection.
    ///
    /// ``invalidationsSent(_:to:)`` must be called once it was sent, or if it is empty; else it is
    /// returned again.
    package func unsentInvalidations(to node: NodeID) -> UnsentInvalidations? {
        peers[node].map { UnsentInvalidations(for: $0, applied.history, streams) }
    }

    /// Records that `unsent` was sent to `node`; ignored if another connection is in use since.
    package mutating func invalidationsSent(_ unsent: UnsentInvalidations, to node: NodeID) {
        peers.recordSent(unsent, to: node)
    }

    /// Records that this node's own records up to `number` are queued to `node`, ahead of later
    /// queries.
    ///
    /// Must not be called for records that the connection refused.
    package mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        peers.recordPushed(upTo: number, to: node)
    }
}
