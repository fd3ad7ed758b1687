package import Ground

/// The facts about a node that its conditions follow from.
package struct NodeFacts: Sendable {
    /// The traffic until now.
    package var history = TrafficHistory()
    /// The counters now.
    package var now: TrafficSample
    /// The node's readiness.
    package var readiness = Readiness.ready
    /// The time since the fence closed; `nil` if it is open.
    package var fenced: Interval?
    /// The seeds that do not reply, with the reason; `nil` unless the node looks for its cluster.
    package var missingSeeds: [String]?
    /// What the node knows of its cluster.
    package var cluster = ClusterFacts()
    /// The origins.
    package var origins: [Origin] = []
    /// The URL of the origin of each site, by the name of the site.
    package var siteOrigins: [String: String] = [:]
    /// The certificates with their validity.
    package var certificates: [Certificate] = []
    /// The wall clock.
    package var wall = WallTime(seconds: 0)
    /// The fault of the disk tier; `nil` without one, and without a disk tier.
    package var diskFault: DiskFault?

    /// An origin.
    package struct Origin: Sendable {
        /// The origin as operators see it.
        package var document: OriginDocument
        /// True if the operator has named the origin, false if clients name it.
        package var isOperatorConfigured: Bool
        /// The requests of the last minute that it should have served.
        package var all: Int
        /// Those among ``all`` that failed, were refused, or got a 5xx.
        package var bad: Int

        /// Creates an origin from its parts.
        package init(
            _ document: OriginDocument, isOperatorConfigured: Bool, all: Int, bad: Int
        ) {
            self.document = document
            self.isOperatorConfigured = isOperatorConfigured
            self.all = all
            self.bad = bad
        }
    }

    /// A certificate that the node presents or trusts.
    package struct Certificate: Sendable {
        /// The name of the file.
        package var file: String
        /// The names in the certificate.
        package var names: [String]
        /// The beginning of the validity.
        package var notBefore: WallTime
        /// The end of the validity.
        package var notAfter: WallTime

        /// Creates a certificate from its parts.
        package init(file: String, names: [String], notBefore: WallTime, notAfter: WallTime) {
            self.file = file
            self.names = names
            self.notBefore = notBefore
            self.notAfter = notAfter
        }
    }

    /// A fault of the disk tier.
    package struct DiskFault: Sendable {
        /// The failed call and its reason; empty if the tier has not started yet.
        package var why: String
        /// True if the file system has no space, or is read-only.
        package var refusesWrites: Bool

        /// Creates a fault from its parts.
        package init(why: String, refusesWrites: Bool) {
            self.why = why
            self.refusesWrites = refusesWrites
        }
    }

    /// Creates the facts of a node without faults, with its counters now.
    package init(now: TrafficSample) {
        self.now = now
    }
}
