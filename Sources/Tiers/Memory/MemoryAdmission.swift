/// How room is made in memory, over all shards: who has to be worth it, and which shard gives.
///
/// **Admission by value.** One large newcomer could flush hundreds of entries that are worth more
/// than it. So before each eviction for it, its gain is compared with the least value of what would
/// go (``MemoryEvictionPolicy/nextVictim(for:)``). If it is less, the newcomer is not kept; its
/// frequency goes to the ghost list (``MemoryEvictionPolicy/refused(hash:)``), so that it is worth
/// more when it returns; and inflation rises by the gain, so that what is no longer asked for does
/// not stay for ever.
///
/// A newcomer of up to a 16th of the limit is not judged: it displaces little, and what is refused
/// is not shared by those who ask while it is fetched. Nor is what is fetched for the disk of the
/// node, because the way there leads through memory; a large one is judged when it comes back from
/// there.
///
/// **Figures.** Object miss ratio of memory alone, before and with it, for 16, 64 and 256 MiB
/// (`nuthatch-sim eviction web-mix large-newcomers --mib 16,64,256`); it costs no time that could
/// be measured, because less is evicted.
///
/// | trace | without | with |
/// |---|---|---|
/// | web-mix | .7464 .6654 .4933 | .7157 .6100 .4918 |
/// | large-newcomers | .3911 .4663 .1054 | .3911 .2383 .0871 |
///
/// On adaptsize_web at 1 % it is .6611 instead of .6681; on recorded traces nothing is worse.
/// Judging everything, or from a 64th on, is within a tenth of a point of it; from a quarter on, up
/// to a point worse.
package enum MemoryAdmission {
    /// The part of the limit from which on a newcomer is judged.
    private static let admissionFraction = 16

    /// True if a newcomer of `bytes` gets in only if it is worth more than what would go for it.
    ///
    /// Of a body that grows, `bytes` are what has come so far.
    package static func isSubjectToAdmission(_ bytes: Int, limitBytes: Int) -> Bool {
        bytes > limitBytes / admissionFraction
    }

    /// Which of `count` shards gives up an entry: the one whose inflation is behind the others', so
    /// that all of them act like one; nil if all are empty.
    ///
    /// Not one that holds less than half of its share of the `bytes` of all entries: what little it
    /// holds may be hot, and nothing in it could go instead. `shard` gives the bytes that one
    /// holds, and its inflation.
    package static func evictingShard(
        among count: Int, bytes: Int, _ shard: (Int) -> (bytes: Int, inflation: UInt64)
    ) -> Int? {
        let halfShare = bytes / count / 2
        var chosen: Int?
        var least: UInt64 = 0
        for index in 0..<count {
            let facts = shard(index)
            guard facts.bytes > 0, facts.bytes >= halfShare else { continue }
            guard chosen == nil || MemoryEvictionPolicy.isBehind(facts.inflation, least) else {
                continue
            }
            chosen = index
            least = facts.inflation
        }
        return chosen
    }
}
