import LinuxHost
