import Synchronization
package import Telemetry

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
