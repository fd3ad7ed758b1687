package import Ground

/// What a question to a peer has to say first.
package struct Untold: Hashable, Sendable {
    /// Records that the member may lack, within what a question takes.
    package var records: [InvalidationRecord]
    /// If there were more, how far this node has applied.
    ///
    /// What does not fit in a question is told ahead of it, in a frame of its own.
    package var positions: [StreamPosition]
    /// Up to which count of invalidations applied this is all.
    let upTo: UInt64
    /// The connection on which it is to be told.
    let connection: ConnectionID

    /// To be told ahead of the question, on the same connection; nil if the question takes all.
    package var ahead: InvalidationMessage? {
        positions.count > PeerProtocol.positionsMax ? .told(positions) : nil
    }

    package var isEmpty: Bool { records.isEmpty && positions.isEmpty }
}

extension InvalidationLog {
    /// What `node` must be told with the next question; nil if there is no connection with it.
    ///
    /// Only when it was sent, or is empty, call ``told(_:to:)``: it is told again otherwise.
    package func untold(to node: NodeID) -> Untold? {
        guard let line = lines[node] else { return nil }
        var untold = Untold(
            records: [], positions: [], upTo: recent.count, connection: line.connection)
        if let toldCount = line.toldCount, toldCount >= recent.count { return untold }
        guard let names = line.toldCount.flatMap({ recent.names(after: $0) }) else {
            untold.positions = reaches
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
            if Invalidation.isCount(record.content) { continue }
            bytes += record.bytesCount + PeerStructure.fieldHeadBytes
            guard bytes <= PeerProtocol.invalidationBytesMax else { break }
            untold.records.append(record)
        }
        if bytes > PeerProtocol.invalidationBytesMax {
            untold.records.removeAll()
            untold.positions = reaches
        }
        return untold
    }

    /// `untold` was sent to `node`; what goes over a later connection is told anew.
    package mutating func told(_ untold: Untold, to node: NodeID) {
        guard var line = lines[node], line.connection == untold.connection else { return }
        line.toldCount = max(line.toldCount ?? 0, untold.upTo)
        lines[node] = line
    }

    /// This node's own records up to `number` are on their way to `node`, ahead of whatever it is
    /// asked from now on; not to be told of what the connection has refused.
    package mutating func pushed(upTo number: UInt64, to node: NodeID) {
        guard var line = lines[node], line.toldOwn < number else { return }
        line.toldOwn = number
        lines[node] = line
    }
}

extension PeerLine {
    /// The member need not be told.
    fileprivate func covers(_ name: RecordName, own: ProcessID) -> Bool {
        let isOwn = name.stream == own
        return (isOwn && name.number <= toldOwn) || name.number <= has[name.stream] ?? 0
    }
}
