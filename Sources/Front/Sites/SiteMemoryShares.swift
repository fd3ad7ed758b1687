import Ground
import HTTPRules
import Store
import Synchronization
import Tiers

/// The memory shares of images and of sites, by site name, kept across changes of settings.
///
/// Thread-safe.
final class SiteMemoryShares: Sendable {
    /// The guarded state.
    private struct State {
        /// Shares of the sites that have one, by site name.
        var sites: [String: MemoryShare] = [:]
        /// Share of images; `nil` if it is unlimited.
        var images: MemoryShare?
    }

    private let state = Mutex(State())

    /// Adopts new settings: existing shares keep the memory charged to them, and a site without a
    /// share has none any more.
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

    /// Returns the share of each site, in the order of `sites`, and that of images; `nil` for an
    /// unlimited one.
    func shares(of sites: SiteTable) -> (sites: [MemoryShare?], images: MemoryShare?) {
        state.withLock { state in (sites.names.map { state.sites[$0] }, state.images) }
    }
}

extension DiskShareLimits {
    /// Creates the limits that sites and images have on disk.
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
