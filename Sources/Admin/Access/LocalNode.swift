package import Telemetry

/// Where the node of this machine is reached, as its settings say.
///
/// Each part fails by itself: a setting that cannot be used matters only to what needs it.
package struct LocalNode: Sendable {
    /// A setting that cannot be used.
    package struct SettingError: Error, Hashable {
        /// For the operator, on one line.
        package let text: String

        package init(_ text: String) {
            self.text = text
        }
    }

    /// The admin port, as far as commands can use it.
    package enum AdminPort: Hashable, Sendable {
        /// `tokenFile` is the path of the file with the tokens that are accepted; nil if none is
        /// needed.
        case address(ListenAddress, tokenFile: String?)
        /// It is not opened.
        case disabled
        /// It accepts only clients that show a certificate.
        case requiresCertificate
        /// Its port is not known before the node runs.
        case ephemeral
    }

    /// True if the command line gives admin-listen, which beats ``ClientEnvironmentVariable/node``.
    package let hasAdminFlag: Bool
    package let adminPort: Result<AdminPort, SettingError>
    /// The path of the file with the tokens of the admin port; nil for none.
    package let adminTokenFile: Result<String?, SettingError>
    /// The first address that serves clients in clear text; nil if there is none, or all have
    /// port 0.
    package let clientAddress: Result<ListenAddress?, SettingError>
    /// The first address in clear text, of the admin port or of those for clients; nil if there is
    /// none, or all have port 0.
    package let healthAddress: Result<ListenAddress?, SettingError>

    package init(
        hasAdminFlag: Bool, adminPort: Result<AdminPort, SettingError>,
        adminTokenFile: Result<String?, SettingError>,
        clientAddress: Result<ListenAddress?, SettingError>,
        healthAddress: Result<ListenAddress?, SettingError>
    ) {
        self.hasAdminFlag = hasAdminFlag
        self.adminPort = adminPort
        self.adminTokenFile = adminTokenFile
        self.clientAddress = clientAddress
        self.healthAddress = healthAddress
    }

    /// A node of whose settings nothing can be used.
    package init(hasAdminFlag: Bool, error: SettingError) {
        self.init(
            hasAdminFlag: hasAdminFlag, adminPort: .failure(error), adminTokenFile: .failure(error),
            clientAddress: .failure(error), healthAddress: .failure(error))
    }
}

/// A variable of the environment that commands read beside the settings of a node.
package enum ClientEnvironmentVariable: String, CaseIterable, Sendable {
    /// Admin ports of the nodes that are asked, as `HOST:PORT`.
    case node = "NUTHATCH_NODE"
    /// Path of the file with the token that proves who asks.
    case tokenFile = "NUTHATCH_TOKEN_FILE"
}
