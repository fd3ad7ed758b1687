import HTTPRules
import Store
import Synchronization

/// The parts of memory that sites have of their own, by the sites' names, through changes of
/// settings.
final class SiteShares: Sendable {
    private let shares = Mutex<[String: MemoryShare]>([:])

    /// The node's sites are now these: a site that had a share keeps what it holds of it.
    func adopt(_ sites: SiteTable) {
        shares.withLock { shares in
            var kept: [String: MemoryShare] = [:]
            for site in sites.sites {
                guard let percent = site.settings.memoryShare else { continue }
                let share = shares[site.name] ?? MemoryShare(percent: percent)
                share.adopt(percent: percent)
                kept[site.name] = share
            }
            shares = kept
        }
    }

    /// The share of each site, in their order; nil for one that may take all of the memory.
    func shares(of sites: SiteTable) -> [MemoryShare?] {
        shares.withLock { shares in sites.names.map { shares[$0] } }
    }
}
