import Ground
package import Tiers

extension DiskLog {
    /// Entries that are looked at to find one that is given up, and in all for one record.
    private static let sample = 512
    private static let examinedMax = 1 << 17

    /// What sites may take from now on; nothing leaves before the next record of theirs comes.
    package func setShareLimits(_ shares: DiskShareLimits) {
        self.shareLimits = shares
    }

    /// Gives up entries of the record's site until that may take the record too; false if it may
    /// not.
    ///
    /// Each time the one goes that was asked for longest ago, of some that are looked at. Their
    /// place on the disk is free when their segments are reclaimed; what counts is what can be
    /// found.
    func makeRoomInShare(for record: DiskRecord) -> Bool {
        let number = DiskShareID.number(ofKey: record.key.span)
        guard let (group, percent) = shareLimits.limit(of: number) else { return true }
        let capacity = (settings.plan.segments - 1) * settings.plan.segmentBytes
        let limit = Int(Double(capacity) * Double(percent) / 100)
        let bytes = record.extent.recordBytes
        guard bytes <= limit else { return false }
        let replaced = view.shards.find(record.name.digest)
        let freed = replaced.map { shareLimits.contains($0.share, in: group) ? $0.bytes : 0 } ?? 0
        var looks = 0
        while view.shards.bytes(of: group, in: shareLimits) - freed + bytes > limit {
            guard looks < Self.examinedMax else { return false }
            let part = view.shards.entries(
                inShard: shareScanPosition.shard, below: shareScanPosition.below,
                atMost: Self.sample
            ) { shareLimits.contains($0.share, in: group) }
            // A shard without entries is a look, too.
            looks += max(part.looked, Self.sample)
            shareScanPosition =
                part.next.map { (shareScanPosition.shard, $0) }
                ?? ((shareScanPosition.shard + 1) % view.shards.shardCount, nil)
            let idlest = part.found.filter { $0.0 != record.name.digest }
                .min { $0.1.lastAccess < $1.1.lastAccess }
            guard let (digest, entry) = idlest,
                view.shards.remove(digest, ifAt: entry.location)
            else { continue }
            entryForgotten(digest, entry)
            policy.recordDrop(digest.first, bytes: entry.bytes)
            counters.add(.evictedEntries)
        }
        return true
    }
}
