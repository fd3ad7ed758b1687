import Synchronization
package import Telemetry

/// The counters of all sites of a node, by the sites' names, through changes of settings.
///
/// Whoever counts holds the counters of its loop; this is asked when settings change and when
/// somebody looks.
package final class SiteCounterTable: Sendable {
    private struct Content {
        /// In the order of the table of sites.
        var names: [String] = []
        /// For every site of `names` those of each loop that asked, by its number.
        var counters: [String: [Int: SiteCounters]] = [:]
    }

    private let content = Mutex(Content())

    package init() {}

    /// The node's sites are now these: those that were there before go on counting, those that are
    /// gone are forgotten.
    package func adopt(_ names: [String]) {
        content.withLock { content in
            var counters: [String: [Int: SiteCounters]] = [:]
            for name in names { counters[name] = content.counters[name] ?? [:] }
            content = Content(names: names, counters: counters)
        }
    }

    /// What the loop of this number counts the sites with: one for each name.
    ///
    /// A name that is not, or no longer, a site's gets counters that nobody reads.
    package func counters(of names: [String], loop: Int) -> [SiteCounters] {
        content.withLock { content in
            names.map { name in
                let counters = content.counters[name]?[loop] ?? SiteCounters()
                content.counters[name]?[loop] = counters
                return counters
            }
        }
    }

    /// The sums over all loops, for each site in its order.
    package func snapshots() -> [SiteSnapshot] {
        content.withLock { content in
            content.names.map { name in
                // The order does not matter to a sum.
                SiteSnapshot(name: name, counters: Array((content.counters[name] ?? [:]).values))
            }
        }
    }
}
