package import Ground

/// What a question to a peer has to say first.
package struct UnsentInvalidations: Hashable, Sendable {
    /// Records that the member may lack, within what a question takes.
    package var records: [InvalidationRecord]
    /// If there were more, how far this node has applied.
    ///
    /// What does not fit in a question is told ahead of it, in a frame of its own.
    package var positions: [StreamPosition]
    /// Up to which count of invalidations applied this is all.
    let appliedCount: UInt64
    /// The connection on which it is to be told.
    let connection: ConnectionID

    /// To be told ahead of the question, on the same connection; nil if the question takes all.
    package var precedingMessage: InvalidationMessage? {
        positions.count > PeerProtocol.queryPositionsMax ? .appliedPositions(positions) : nil
    }

    package var isEmpty: Bool { records.isEmpty && positions.isEmpty }
}

extension InvalidationLog {
    /// What `node` must be told with the next question; nil if there is no connection with it.
    ///
    /// Only when it was sent, or is empty, call ``told(_:to:)``: it is told again otherwise.
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
                // It was dropped already.
                bytes = .max
                break
            }
            // Whoever reads one relies on its being synced where it was written, and no entry
            // depends on it.
            if Invalidation.isConsensus(record.content) { continue }
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

    /// `untold` was sent to `node`; what goes over a later connection is told anew.
    package mutating func invalidationsSent(_ untold: UnsentInvalidations, to node: NodeID) {
        guard var line = peers[node], line.connection == untold.connection else { return }
        line.sentCount = max(line.sentCount ?? 0, untold.appliedCount)
        peers[node] = line
    }

    /// This node's own records up to `number` are on their way to `node`, ahead of whatever it is
    /// asked from now on; not to be told of what the connection has refused.
    package mutating func recordPushed(upTo number: UInt64, to node: NodeID) {
        guard var line = peers[node], line.pushedNumber < number else { return }
        line.pushedNumber = number
        peers[node] = line
    }
}

extension PeerProgress {
    /// The member need not be told.
    fileprivate func covers(_ name: RecordID, own: ProcessID) -> Bool {
        let isOwn = name.stream == own
        return (isOwn && name.number <= pushedNumber)
            || name.number <= syncedCounts[name.stream] ?? 0
    }
}

/// What this node and a member that it is connected with know of each other's knowledge.
struct PeerProgress: Sendable {
    /// The connection on which they speak.
    let connection: ConnectionID
    /// What was applied up to this count was told, or need not be; nil if nothing was.
    var sentCount: UInt64?
    /// This node's own records up to this number were pushed, ahead of whatever is asked next.
    var pushedNumber: UInt64 = 0
    /// What the member says to have, without gaps.
    var syncedCounts = SortedTable<ProcessID, UInt64>()
}
