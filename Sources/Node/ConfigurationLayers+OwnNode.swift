import Admin
import Telemetry

extension ConfigurationLayers {
    /// The node that would run with these settings, for commands that ask it.
    func ownNode(hasAdminFlag: Bool) -> OwnNode {
        OwnNode(
            hasAdminFlag: hasAdminFlag, adminPort: part(adminPort),
            adminTokenFile: part(adminTokenFile), clientAddress: part(clientAddress),
            healthAddress: part(healthAddress))
    }

    private func part<Value>(
        _ read: () throws(ConfigurationFaults) -> Value
    ) -> Result<Value, OwnNode.Fault> {
        do throws(ConfigurationFaults) {
            return .success(try read())
        } catch {
            return .failure(OwnNode.Fault(error.first.description))
        }
    }

    private func adminPort() throws(ConfigurationFaults) -> OwnNode.AdminPort {
        let values = try values(of: [.adminListen, .adminTokenFile, .clientCA])
        guard let address = values.addresses(.adminListen).first else { return .off }
        if values.path(.clientCA) != nil { return .wantsCertificate }
        return address.port == 0
            ? .chosenByKernel : .address(address, tokenFile: values.path(.adminTokenFile))
    }

    private func adminTokenFile() throws(ConfigurationFaults) -> String? {
        try values(of: [.adminTokenFile]).path(.adminTokenFile)
    }

    private func clientAddress() throws(ConfigurationFaults) -> ListenAddress? {
        try clientAddresses().first { $0.port != 0 }
    }

    private func healthAddress() throws(ConfigurationFaults) -> ListenAddress? {
        let values = try values(of: [.adminListen, .clientCA])
        let admin = values.path(.clientCA) == nil ? values.addresses(.adminListen) : []
        return (admin + (try clientAddresses())).first { $0.port != 0 }
    }

    /// Where clients are served in clear text.
    private func clientAddresses() throws(ConfigurationFaults) -> [ListenAddress] {
        let values = try values(of: [.listen, .plainListen, .tlsCertificate])
        let hasTLS = !values.paths(.tlsCertificate).isEmpty
        return values.addresses(.plainListen) + (hasTLS ? [] : values.addresses(.listen))
    }

    private func values(
        of names: [SettingName]
    ) throws(ConfigurationFaults) -> ConfigurationValues {
        var values = ConfigurationValues()
        for name in names {
            do throws(SettingError) {
                let (parsed, source) = try self.values(of: name.setting)
                values.set(name, parsed, from: source)
            } catch {
                throw ConfigurationFaults(.setting(error))
            }
        }
        return values
    }
}
