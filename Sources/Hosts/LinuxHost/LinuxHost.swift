import CLinux
import CNetlink
