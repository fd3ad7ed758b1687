package import Telemetry

/// The addresses of this machine's node, derived from its settings.
///
/// Each part fails on its own: an unusable setting affects only the commands that need it.
package struct LocalNode: Sendable {
    /// A setting that cannot be used, and why.
    package struct SettingError: Error, Hashable {
        /// The explanation for the operator, on one line.
        package let text: String

        /// Creates an error with its explanation.
        package init(_ text: String) {
            self.text = text
        }
    }

    /// The state of the admin port, as seen by the commands of the client.
    package enum AdminPort: Hashable, Sendable {
        /// The port's address; `tokenFile` is the path of the file with the accepted tokens, or
        /// `nil` if no token is needed.
        case address(ListenAddress, tokenFile: String?)
        /// The port is not opened.
        case disabled
        /// The port accepts only clients with a certificate.
        case requiresCertificate
        /// The port's number is 0, so that it is known only once the node runs.
        case ephemeral
    }

    /// True if the command line sets admin-listen, which overrides
    /// ``ClientEnvironmentVariable/node``.
    package let hasAdminFlag: Bool
    /// The admin port, or the setting that makes it unknown.
    package let adminPort: Result<AdminPort, SettingError>
    /// The path of the admin port's token file; `nil` for none.
    package let adminTokenFile: Result<String?, SettingError>
    /// The first clear-text address for clients; `nil` if there is none, or all have port 0.
    package let clientAddress: Result<ListenAddress?, SettingError>
    /// The first address for clients over TLS; `nil` if there is none, or all have port 0.
    package let secureAddress: Result<ListenAddress?, SettingError>
    /// The first clear-text address of the admin port or for clients; `nil` if there is none, or
    /// all have port 0.
    package let healthAddress: Result<ListenAddress?, SettingError>

    /// Creates the description of a node from its parts.
    package init(
        hasAdminFlag: Bool, adminPort: Result<AdminPort, SettingError>,
        adminTokenFile: Result<String?, SettingError>,
        clientAddress: Result<ListenAddress?, SettingError>,
        secureAddress: Result<ListenAddress?, SettingError>,
        healthAddress: Result<ListenAddress?, SettingError>
    ) {
        self.hasAdminFlag = hasAdminFlag
        self.adminPort = adminPort
        self.adminTokenFile = adminTokenFile
        self.clientAddress = clientAddress
        self.secureAddress = secureAddress
        self.healthAddress = healthAddress
    }

    /// Creates the description of a node with no usable settings.
    package init(hasAdminFlag: Bool, error: SettingError) {
        self.init(
            hasAdminFlag: hasAdminFlag, adminPort: .failure(error), adminTokenFile: .failure(error),
            clientAddress: .failure(error), secureAddress: .failure(error),
            healthAddress: .failure(error))
    }
}

/// An environment variable that client commands read in addition to a node's settings.
package enum ClientEnvironmentVariable: String, CaseIterable, Sendable {
    /// The admin ports of the nodes to query, each as `HOST:PORT`.
    case node = "NUTHATCH_NODE"
    /// The path of the file with the caller's token.
    case tokenFile = "NUTHATCH_TOKEN_FILE"
}
