internal import Provider

// The end.
extension RunDaemon {
    mutating func close() {
        commands.terminate()
        messages.removeAll()
        metrics.close(loop)
        control?.removeAll()
        closeInterface()
        dns?.stop()
        try? channel?.removeControlSocket(messages.listener.identifier)
    }

    /// Takes back what is left of the settings, and lets go of the interface, which disappears.
    mutating func closeInterface() {
        clearResolver()
        dns?.serve(nil)
        guard var interface = interface.take() else { return }
        for note in (try? interface.channel.clearSettings(of: interface.identifier)) ?? [] {
            log.error("\(public: note.description)")
        }
        if let identifier = controlIdentifier { try? interface.channel.removeControlSocket(identifier) }
        try? interface.channel.removeControlSocket(messages.listener.identifier)
        interface.close(loop)
        control?.removeAll()
    }

    private var controlIdentifier: ControlSocketIdentifier? {
        switch control {
        case .some(let control): control.listener.identifier
        case .none: nil
        }
    }

    var isInterfaceClosed: Bool {
        switch interface {
        case .some: false
        case .none: true
        }
    }
}
