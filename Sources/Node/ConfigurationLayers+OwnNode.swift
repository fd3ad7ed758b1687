import Admin
import Telemetry

extension ConfigurationLayers {
    /// The node that would run with these settings, for commands that ask it.
    func ownNode(hasAdminFlag: Bool) -> LocalNode {
        LocalNode(
            hasAdminFlag: hasAdminFlag, adminPort: captured(adminPort),
            adminTokenFile: captured(adminTokenFile), clientAddress: captured(clientAddress),
            healthAddress: captured(healthAddress))
    }

    private func captured<Value>(
        _ read: () throws(ConfigurationErrors) -> Value
    ) -> Result<Value, LocalNode.SettingError> {
        do throws(ConfigurationErrors) {
            return .success(try read())
        } catch {
            return .failure(LocalNode.SettingError(error.first.description))
        }
    }

    private func adminPort() throws(ConfigurationErrors) -> LocalNode.AdminPort {
        let values = try values(of: [.adminListen, .adminTokenFile, .clientCA])
        guard let address = values.addresses(.adminListen).first else { return .disabled }
        if values.path(.clientCA) != nil { return .requiresCertificate }
        return address.port == 0
            ? .ephemeral : .address(address, tokenFile: values.path(.adminTokenFile))
    }

    private func adminTokenFile() throws(ConfigurationErrors) -> String? {
        try values(of: [.adminTokenFile]).path(.adminTokenFile)
    }

    private func clientAddress() throws(ConfigurationErrors) -> ListenAddress? {
        try clientAddresses().first { $0.port != 0 }
    }

    private func healthAddress() throws(ConfigurationErrors) -> ListenAddress? {
        let values = try values(of: [.adminListen, .clientCA])
        let admin = values.path(.clientCA) == nil ? values.addresses(.adminListen) : []
        return (admin + (try clientAddresses())).first { $0.port != 0 }
    }

    /// Where clients are served in clear text.
    private func clientAddresses() throws(ConfigurationErrors) -> [ListenAddress] {
        let values = try values(of: [.listen, .plainListen, .tlsCertificate])
        let hasTLS = !values.paths(.tlsCertificate).isEmpty
        return values.addresses(.plainListen) + (hasTLS ? [] : values.addresses(.listen))
    }

    private func values(
        of names: [SettingName]
    ) throws(ConfigurationErrors) -> ConfigurationValues {
        var values = ConfigurationValues()
        for name in names {
            do throws(SettingError) {
                let (parsed, source) = try self.values(of: name.setting)
                values.set(name, parsed, from: source)
            } catch {
                throw ConfigurationErrors(.invalidSetting(error))
            }
        }
        return values
    }
}
