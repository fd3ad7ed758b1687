import Ground

/// The streams that this node knows of, in the order of their processes; each is changed where it
/// lies, for it may be big.
struct StreamTable: Sendable {
    private(set) var streams: [InvalidationStream] = []

    var indices: Range<Int> { streams.indices }
    var count: Int { streams.count }

    subscript(place: Int) -> InvalidationStream {
        get { streams[place] }
        _modify { yield &streams[place] }
    }

    func index(of process: ProcessID) -> Int? {
        let place = streams.partitionPoint { $0.process < process }
        return place < streams.count && streams[place].process == process ? place : nil
    }

    /// The place of an empty stream of `process`, which must not be known.
    mutating func add(_ process: ProcessID, at now: Instant) -> Int {
        let place = streams.partitionPoint { $0.process < process }
        streams.insert(InvalidationStream(process, at: now), at: place)
        return place
    }

    mutating func remove(_ place: Int) {
        streams.remove(at: place)
    }
}

extension ProcessID: Comparable {
    /// By the number of 128 bits.
    package static func < (left: ProcessID, right: ProcessID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}
