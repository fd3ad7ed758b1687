/// A variable of the environment that commands read beside the settings of a node.
package enum ClientEnvironmentVariable: String, CaseIterable, Sendable {
    /// Admin ports of the nodes that are asked, as `HOST:PORT`.
    case node = "NUTHATCH_NODE"
    /// Path of the file with the token that proves who asks.
    case tokenFile = "NUTHATCH_TOKEN_FILE"
}
