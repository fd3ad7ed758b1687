import Ground
import HTTPRules
import Store
import Synchronization
import Tiers

/// The parts of memory that sites and images have of their own, the sites' by their names, through
/// changes of settings.
final class SiteMemoryShares: Sendable {
    private struct State {
        var sites: [String: MemoryShare] = [:]
        var images: MemoryShare?
    }

    private let state = Mutex(State())

    /// The settings are now these: whatever had a share keeps what it holds of it.
    func adopt(_ settings: NodeSettings) {
        func adopted(_ share: MemoryShare?, _ settings: SiteSettings) -> MemoryShare? {
            guard let percent = settings.memoryShare else { return nil }
            let share = share ?? MemoryShare(percent: percent)
            share.setPercent(percent)
            return share
        }
        state.withLock { state in
            var sites: [String: MemoryShare] = [:]
            for site in settings.sites.sites {
                sites[site.name] = adopted(state.sites[site.name], site.settings)
            }
            state.sites = sites
            state.images = adopted(state.images, settings.images.defaultPolicy.settings)
        }
    }

    /// The share of each site, in their order, and that of images; nil for what may take all of the
    /// memory.
    func shares(of sites: SiteTable) -> (sites: [MemoryShare?], images: MemoryShare?) {
        state.withLock { state in (sites.names.map { state.sites[$0] }, state.images) }
    }
}

extension DiskShareLimits {
    /// What sites and images may take of the disk.
    init(_ settings: NodeSettings) {
        self.init()
        setImageLimit(percent: settings.images.defaultPolicy.settings.diskShare)
        for site in settings.sites.sites {
            if site.pattern == .catchAll {
                setDefaultLimit(percent: site.settings.diskShare)
            } else {
                setHostLimit(Array(site.name.utf8), percent: site.settings.diskShare)
            }
        }
    }
}
