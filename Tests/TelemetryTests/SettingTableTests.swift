import Telemetry
import Testing

@Suite("The table of settings")
struct SettingTableTests {
    @Test("Every name has one row, in the order of the names")
    func everyNameHasOneRow() {
        #expect(Setting.table.map(\.name) == SettingName.allCases)
    }

    @Test("Every default is valid for its setting", arguments: Setting.table)
    func defaultsAreAccepted(setting: Setting) throws {
        for text in setting.defaults {
            _ = try setting.parse(text, from: .builtIn)
        }
        #expect(setting.isList || setting.defaults.count <= 1)
        #expect(!setting.defaultText.isEmpty)
    }

    @Test("Every example is valid for its setting", arguments: Setting.table)
    func examplesAreAccepted(setting: Setting) throws {
        let example = try #require(setting.example)
        _ = try setting.parse(example, from: .builtIn)
    }

    @Test("A meaning is a line without a full stop, advice is sentences", arguments: Setting.table)
    func textsAreSentences(setting: Setting) {
        #expect(setting.meaning.first?.isUppercase == true)
        #expect(!setting.meaning.contains("\n") && !setting.meaning.hasSuffix("."))
        #expect(!setting.advice.contains("\n") && setting.advice.hasSuffix("."))
    }

    @Test("Rows of a section are adjacent, so that --help shows each heading once")
    func sectionsStandTogether() {
        var headings: [Setting.Section] = []
        for section in Setting.table.map(\.section) where section != headings.last {
            headings.append(section)
        }
        #expect(headings == Setting.Section.allCases)
    }

    @Test(
        "Flag and variable are derived from the name",
        arguments: [
            (SettingName.memoryLimit, "--memory-limit", "NUTHATCH_MEMORY_LIMIT"),
            (.defaultTTL, "--default-ttl", "NUTHATCH_DEFAULT_TTL"),
            (.loops, "--loops", "NUTHATCH_LOOPS"),
        ])
    func namesFollow(name: SettingName, flag: String, variable: String) {
        #expect(name.flag == flag)
        #expect(name.environmentName == variable)
    }

    @Test("Help has meaning, bounds, units, default and variable")
    func helpIsComplete() {
        #expect(
            SettingName.memoryLimit.setting.help == """
                Memory that stored images may take, heads and bookkeeping included. \
                Allowed: 16MiB…1TiB. Units: B, KB, MB, GB, KiB, MiB, GiB, TiB. \
                Default: 512MiB. Environment: NUTHATCH_MEMORY_LIMIT.
                """)
        #expect(
            SettingName.allowPrivateOrigin.setting.help.contains(
                "May be repeated; separated by white space in the environment. Default: none."))
    }
}
