import Ground

/// The clients' ids of the records that are held.
struct ClientIDIndex: Sendable {
    /// By a hash of the id, the first record that is held with it.
    private var names: [UInt64: RecordID] = [:]

    /// The record that is held with this id, or with another one of the same hash.
    func candidate(for id: [UInt8]) -> RecordID? { names[Self.hash(id)] }

    mutating func add(_ record: InvalidationRecord) {
        let id = Invalidation.clientID(in: record.content.span)
        guard !id.isEmpty else { return }
        let hash = Self.hash(id)
        if names[hash] == nil { names[hash] = record.id }
    }

    mutating func remove(_ name: RecordID, _ content: [UInt8]) {
        let hash = Self.hash(Invalidation.clientID(in: content.span))
        if names[hash] == name { names[hash] = nil }
    }

    private static func hash(_ id: [UInt8]) -> UInt64 { XXH64.hash(id.span, seed: 0) }
}
