import Ground
package import Tiers

extension DiskLog {
    /// Entries that are looked at to find one that is given up, and in all for one record.
    private static let sample = 512
    private static let looksMax = 1 << 17

    /// What sites may take from now on; nothing leaves before the next record of theirs comes.
    package func adopt(_ shares: DiskShares) {
        self.shares = shares
    }

    /// Gives up entries of the record's site until that may take the record too; false if it may
    /// not.
    ///
    /// Each time the one goes that was asked for longest ago, of some that are looked at. Their
    /// place on the disk is free when their segments are reclaimed; what counts is what can be
    /// found.
    func makeShare(for record: DiskRecord) -> Bool {
        let number = DiskShare.number(ofKey: record.key.span)
        guard let (group, percent) = shares.limit(of: number) else { return true }
        let capacity = (settings.plan.segments - 1) * settings.plan.segmentBytes
        let limit = Int(Double(capacity) * Double(percent) / 100)
        let bytes = record.extent.recordBytes
        guard bytes <= limit else { return false }
        let replaced = view.shards.find(record.name.digest)
        let freed = replaced.map { shares.holds($0.share, in: group) ? $0.bytes : 0 } ?? 0
        var looks = 0
        while view.shards.bytes(of: group, in: shares) - freed + bytes > limit {
            guard looks < Self.looksMax else { return false }
            let part = view.shards.entries(
                inShard: shareWalk.shard, below: shareWalk.below, atMost: Self.sample
            ) { shares.holds($0.share, in: group) }
            // A shard without entries is a look, too.
            looks += max(part.looked, Self.sample)
            shareWalk =
                part.next.map { (shareWalk.shard, $0) }
                ?? ((shareWalk.shard + 1) % view.shards.shardCount, nil)
            let idlest = part.found.filter { $0.0 != record.name.digest }
                .min { $0.1.lastAccess < $1.1.lastAccess }
            guard let (digest, entry) = idlest,
                view.shards.remove(digest, ifAt: entry.location)
            else { continue }
            forgotten(digest, entry)
            rule.dropped(digest.first, bytes: entry.bytes)
            figures.add(.evictedEntries)
        }
        return true
    }
}
