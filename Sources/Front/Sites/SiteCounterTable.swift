import Ground
import HTTPRules
import Store
import Synchronization
package import Telemetry
import Tiers

/// The counters of all sites of a node by site name, kept across changes of settings.
///
/// Counting uses the counters of each loop directly; this table is accessed only when settings
/// change and for snapshots. Thread-safe.
package final class SiteCounterTable: Sendable {
    /// The guarded state.
    private struct Content {
        /// Names in the order of the site table.
        var names: [String] = []
        /// Counters of each site, by number of the loop.
        var counters: [String: [Int: SiteCounters]] = [:]
        /// Sums of the counters of removed sites.
        var removed = SiteSnapshot(name: "", counters: [])
    }

    private let content = Mutex(Content())

    /// Creates a table without sites.
    package init() {}

    /// Adopts the node's sites: counters of known sites are kept, those of removed sites dropped.
    package func adopt(_ names: [String]) {
        content.withLock { content in
            var counters: [String: [Int: SiteCounters]] = [:]
            for name in names { counters[name] = content.counters.removeValue(forKey: name) ?? [:] }
            let dropped = content.counters.values.flatMap(\.values)
            content = Content(
                names: names, counters: counters,
                removed: content.removed + SiteSnapshot(name: "", counters: dropped))
        }
    }

    /// Returns the counters of a loop for each of `names`.
    ///
    /// A name that is not, or no longer, a site's gets counters that no snapshot includes.
    package func counters(of names: [String], loop: Int) -> [SiteCounters] {
        content.withLock { content in
            names.map { name in
                let counters = content.counters[name]?[loop] ?? SiteCounters()
                content.counters[name]?[loop] = counters
                return counters
            }
        }
    }

    /// The sums of the counters of all removed sites, as of their removal.
    package var removed: SiteSnapshot { content.withLock { $0.removed } }

    /// Returns the sums over all loops for each site, in the order of the names last adopted.
    package func snapshots() -> [SiteSnapshot] {
        content.withLock { content in
            content.names.map { name in
                // Order does not affect a sum.
                SiteSnapshot(name: name, counters: Array((content.counters[name] ?? [:]).values))
            }
        }
    }
}

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
