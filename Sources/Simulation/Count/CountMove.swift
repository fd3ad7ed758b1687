/// One step of a run; nodes go by their places, 0 the first.
enum VoterModelAction: Hashable, Sendable {
    /// The node issues the purge.
    case purge(UInt8)
    /// The node reads the purge from somebody who has synced it.
    case readPurge(UInt8)
    /// The first that the node has written and not synced is synced.
    case sync(UInt8)
    /// The node reads the next record of a stream.
    case read(UInt8, stream: UInt8)
    /// The node asks a member, and is answered.
    case request(UInt8, UInt8)
    /// The node asks a member, whose answer of now comes later.
    case requestDelayed(UInt8, UInt8)
    case receiveDelayed(UInt8)
    /// The node begins a ballot by which another is to be counted.
    case add(UInt8, UInt8)
    case remove(UInt8, UInt8)
    /// The node votes again for the change that made its set.
    case repeatVote(UInt8)
    /// The operator has the node forget the members of a mask by a majority of the others.
    case removeByOperator(UInt8, without: UInt8)
    /// The node has lost what it had not synced and, if it forgets, what it had read.
    case crash(UInt8, forgets: Bool)

    /// A stream is read on, even if the node stays as it is.
    var isReading: Bool {
        if case .read = self { true } else { false }
    }
}

/// Letters for nodes, as traces name them.
enum VoterModelNodeName {
    static func node(_ place: Int) -> String {
        String(UnicodeScalar(UInt8(ascii: "a") + UInt8(place)))
    }

    static func nodes(_ mask: UInt8) -> String {
        let letters = (0..<VoterModelTables.nodesMax).filter { mask & 1 << $0 != 0 }.map(node)
        return "{" + letters.joined(separator: ",") + "}"
    }
}
