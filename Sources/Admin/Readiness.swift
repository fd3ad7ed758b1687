/// Whether a node wants to be sent requests; health is another matter, and ends with the process.
package enum Readiness: String, CaseIterable, Sendable {
    /// Not all ports are open yet. Can become: joining, ready.
    case starting
    /// The node looks for its cluster, and serves nobody. Can become: ready.
    case joining
    /// Requests are served. Can become: draining.
    case ready
    /// The node was told to stop; running requests are finished, new ones should go elsewhere.
    case draining
}
