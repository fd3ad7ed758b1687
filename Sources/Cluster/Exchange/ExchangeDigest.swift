import Ground

/// What a node has synced and which count it follows, in 64 bits: two that have the same need not
/// tell it each other.
///
/// Nodes of one cluster trust each other, so that nobody looks for two states with one digest; by
/// chance one in 2^64 comparisons of different states takes them for the same.
enum ReplicationDigest {
    private static let seed: UInt64 = 0x6E75_7468_6174_6368

    static func of(_ catchUp: CatchUpTarget, _ standing: VoterConfiguration?) -> UInt64 {
        var hash = XXH64(seed: seed)
        for positions in [catchUp.positions, catchUp.retired] {
            var writer = StructureWriter()
            writer.put(UInt64(positions.count))
            for position in positions { position.put(into: &writer) }
            hash.update(writer.bytes.span)
        }
        // One that is too long to be written is too long to be told: all that is left of it is that
        // there is one.
        if let standing {
            let bytes = (try? standing.bytes()) ?? [0]
            hash.update(bytes.span)
        }
        return hash.finish()
    }
}
