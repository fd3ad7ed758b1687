package import Telemetry

/// The declaration of a setting, with the type of its value.
package struct SettingKey<Value: Sendable>: Sendable {
    /// Everything about the setting but its value.
    package let setting: Setting
    /// The default value.
    let defaultValue: Value
    /// Returns the value that texts stand for; they are as many as the setting may have.
    private let parse: @Sendable ([SettingText]) throws(SettingError) -> Value
    /// Returns the texts of a value, as an operator may write them.
    let texts: @Sendable (Value) -> [String]

    /// Creates a key and parses its default.
    private init(
        _ setting: Setting,
        parse: @escaping @Sendable ([SettingText]) throws(SettingError) -> Value,
        texts: @escaping @Sendable (Value) -> [String]
    ) {
        self.setting = setting
        self.parse = parse
        self.texts = texts
        do throws(SettingError) {
            defaultValue = try parse(setting.defaults.map { ($0, .builtIn) })
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension SettingKey {
    /// Declares a setting that always has one value.
    ///
    /// - Parameters:
    ///   - name: the key in the file; flag and variable follow from it.
    ///   - type: the type of the value.
    ///   - defaultText: the default value.
    ///   - note: the rule by which the default is computed; empty if `defaultText` says it all.
    ///   - example: an example of a value; `nil` for the default.
    ///   - needsRestart: true if a running node cannot apply a new value.
    ///   - isSameOnAllNodes: true if the value must be the same on all nodes of a cluster.
    ///   - meaning: the meaning for the operator, in one line without a full stop.
    ///   - advice: the advice for a limit that is reached or a value that does not fit.
    init(
        _ name: String, _ type: SettingType<Value>, default defaultText: String,
        note: String = "", example: String? = nil, needsRestart: Bool = false,
        isSameOnAllNodes: Bool = false, meaning: String, advice: String
    ) {
        let setting = Setting(
            name, type.kind, defaults: [defaultText], note: note, example: example,
            needsRestart: needsRestart, isSameOnAllNodes: isSameOnAllNodes, meaning: meaning,
            advice: advice)
        self.init(
            setting,
            parse: { texts throws(SettingError) in
                try type.value(of: texts.first ?? (defaultText, .builtIn), for: setting)
            }, texts: { [type.text($0)] })
    }

    /// Declares a setting that has one value or none; the parameters are those of the others.
    init<Element: Sendable>(
        _ name: String, _ type: SettingType<Element>, note: String = "", example: String? = nil,
        needsRestart: Bool = false, meaning: String, advice: String
    ) where Value == Element? {
        let setting = Setting(
            name, type.kind, defaults: [], note: note, example: example,
            needsRestart: needsRestart, meaning: meaning, advice: advice)
        self.init(
            setting,
            parse: { texts throws(SettingError) in
                guard let text = texts.first else { return nil }
                return try type.value(of: text, for: setting)
            }, texts: { $0.map { [type.text($0)] } ?? [] })
    }

    /// Declares a setting with any number of values; the parameters are those of the others.
    init<Element: Sendable>(
        _ name: String, listOf type: SettingType<Element>, default defaults: String...,
        note: String = "", example: String? = nil, needsRestart: Bool = false,
        isSameOnAllNodes: Bool = false, meaning: String, advice: String
    ) where Value == [Element] {
        let setting = Setting(
            name, type.kind, defaults: defaults, note: note, example: example, isList: true,
            needsRestart: needsRestart, isSameOnAllNodes: isSameOnAllNodes, meaning: meaning,
            advice: advice)
        self.init(
            setting,
            parse: { texts throws(SettingError) in
                var values: [Element] = []
                for text in texts { values.append(try type.value(of: text, for: setting)) }
                return values
            }, texts: { $0.map(type.text) })
    }
}

/// A given text of a setting and its source.
typealias SettingText = (text: String, source: SettingSource)

extension SettingType {
    /// Returns the value of a text of `setting`.
    fileprivate func value(
        of given: SettingText, for setting: Setting
    ) throws(SettingError) -> Value {
        do throws(SettingError.Problem) {
            return try parse(given.text)
        } catch {
            throw SettingError(
                setting: setting, source: given.source, text: given.text, problem: error)
        }
    }
}

/// A setting whose value may be of any type.
package protocol AnySettingKey: Sendable {
    /// Everything about the setting but its value.
    var setting: Setting { get }

    /// Returns the value that texts stand for, as an entry of ``ConfigurationValues``.
    func entry(
        of texts: [(text: String, source: SettingSource)], from source: SettingSource
    ) throws(SettingError) -> SettingEntry
}

extension SettingKey: AnySettingKey {
    /// Returns the value that texts stand for, with these texts in their usual form.
    ///
    /// - Parameters:
    ///   - given: the texts, each with its source.
    ///   - source: the source of the value as a whole.
    /// - Returns: the entry of this setting.
    /// - Throws: the error of a text, or of their number.
    package func entry(
        of given: [(text: String, source: SettingSource)], from source: SettingSource
    ) throws(SettingError) -> SettingEntry {
        func error(_ problem: SettingError.Problem) -> SettingError {
            SettingError(setting: setting, source: source, text: "", problem: problem)
        }
        if !setting.isList, given.count > 1 { throw error(.severalValues(given.count)) }
        if given.isEmpty, !setting.defaults.isEmpty { throw error(.noValue) }
        return entry(try parse(given), from: source)
    }

    /// Returns the entry of a value.
    func entry(_ value: Value, from source: SettingSource) -> SettingEntry {
        SettingEntry(value: Holder(value: value), texts: texts(value), source: source)
    }

    /// Returns the value of an entry; the default if it is an entry of another key.
    func value(of entry: SettingEntry?) -> Value {
        (entry?.value as? Holder)?.value ?? defaultValue
    }

    /// The wrapper of a value in an entry, a type of its own for each type of value.
    private struct Holder: Sendable {
        let value: Value
    }
}

/// The value of a setting, with its texts and its source.
package struct SettingEntry: Sendable {
    /// The value, which only its key can take out.
    fileprivate let value: any Sendable
    /// The value as an operator may write it; empty for an empty list and for an absent value.
    package let texts: [String]
    /// The source that has given the value.
    package let source: SettingSource
}
