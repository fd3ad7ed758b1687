import NodeConfiguration
import Telemetry
import Testing

@Suite("The table of settings")
struct SettingTableTests {
    private static let keys = Setting.sections.flatMap(\.keys)

    @Test("every setting of a section is a row, each name once")
    func everyNameHasOneRow() {
        let declared = [
            Mirror(reflecting: Setting.node), Mirror(reflecting: Setting.memory),
            Mirror(reflecting: Setting.disk), Mirror(reflecting: Setting.origins),
            Mirror(reflecting: Setting.clients), Mirror(reflecting: Setting.tls),
            Mirror(reflecting: Setting.cluster),
        ]
        #expect(declared.map(\.children.count) == Setting.sections.map(\.keys.count))
        // A setting is read under its own name.
        let labels = declared.flatMap(\.children).map { $0.label?.lowercased() }
        #expect(labels == Setting.table.map { $0.name.replacing("-", with: "") })
        #expect(Set(Setting.table.map(\.name)).count == Setting.table.count)
        #expect(Setting.table.allSatisfy { Setting.named($0.name) == $0 })
    }

    @Test("default and example are values of the setting, and a value's text stands for the same")
    func textsAreValues() throws {
        for key in Self.keys {
            let setting = key.setting
            #expect(!setting.example.isEmpty && !setting.defaultText.isEmpty, "\(setting.name)")
            #expect(setting.isList || setting.defaults.count <= 1, "\(setting.name)")
            for texts in [setting.defaults, [setting.example]] {
                let entry = try key.entry(of: texts.map { ($0, .builtIn) }, from: .builtIn)
                #expect(entry.texts.count == texts.count, "\(setting.name)")
                let again = try key.entry(
                    of: entry.texts.map { ($0, .builtIn) }, from: .builtIn)
                #expect(again.texts == entry.texts, "\(setting.name)")
            }
        }
    }

    @Test("a meaning is a line without a full stop, advice is sentences", arguments: Setting.table)
    func textsAreSentences(setting: Setting) {
        #expect(setting.meaning.first?.isUppercase == true)
        #expect(!setting.meaning.contains("\n") && !setting.meaning.hasSuffix("."))
        #expect(!setting.advice.contains("\n") && setting.advice.hasSuffix("."))
    }

    @Test(
        "flag and variable follow from the name",
        arguments: [
            (Setting.memory.memoryLimit.setting, "--memory-limit", "NUTHATCH_MEMORY_LIMIT"),
            (Setting.memory.defaultTTL.setting, "--default-ttl", "NUTHATCH_DEFAULT_TTL"),
            (Setting.node.loops.setting, "--loops", "NUTHATCH_LOOPS"),
        ])
    func namesFollow(setting: Setting, flag: String, variable: String) {
        #expect(setting.flag == flag)
        #expect(setting.environmentName == variable)
    }

    @Test("help names meaning, bounds, units, default and variable")
    func helpIsComplete() {
        #expect(
            Setting.memory.memoryLimit.setting.help == """
                Memory for stored images, including heads and bookkeeping. \
                Allowed: 16MiB…1TiB. Units: B, KB, MB, GB, KiB, MiB, GiB, TiB. \
                Default: 512MiB. Environment: NUTHATCH_MEMORY_LIMIT.
                """)
        #expect(
            Setting.origins.allowPrivateOrigin.setting.help.contains(
                "May be repeated; separated by white space in the environment. Default: none."))
    }
}
